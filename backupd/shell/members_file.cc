#include "backupd/shell/members_file.h"

#include <algorithm>
#include <cerrno>
#include <sstream>

#include <fcntl.h>
#include <unistd.h>

#include "base/failpoint.h"
#include "base/files.h"
#include "base/text.h"

namespace dcs::backup {
namespace {

constexpr const char *file_name = "/members";
constexpr std::size_t file_bytes = 16u << 20;

}  // namespace

Result<Members> read_members(const std::string &directory) {
    const std::string path = directory + file_name;
    Members members;
    const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    if (!fd && errno == ENOENT) return members;
    if (!fd) return fail_errno(Code::io_error, "cannot read " + path, errno);
    const auto text = read_open(fd.get(), "cannot read " + path, file_bytes, false);
    if (!text) return text.status();
    std::istringstream lines(*text);
    for (std::string line; std::getline(lines, line);) {
        std::string host, key;
        std::istringstream words(line);
        words >> host >> key;
        const auto bytes = bytes_of_hex(key, sizeof(TokenHash));
        if (host.empty() || !bytes)
            return fail(Code::io_error, path + " is damaged; remove it, the scheduler will send it again");
        std::copy(bytes->begin(), bytes->end(), members[host].begin());
    }
    return members;
}

Status write_members(const std::string &directory, const Members &members) {
    const std::string path = directory + file_name, fresh = path + ".new";
    std::string text;
    for (const auto &[host, key] : members) text += host + " " + hex_of(std::string(key.begin(), key.end())) + "\n";
    failpoint("backup.members.before_write");
    Fd fd(::open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!fd || !write_all(fd.get(), text) || ::fsync(fd.get()) != 0 || !fd.close_checked())
        return fail_errno(Code::io_error, "cannot write " + fresh, errno);
    failpoint("backup.members.before_rename");
    if (::rename(fresh.c_str(), path.c_str()) != 0) return fail_errno(Code::io_error, "cannot write " + path, errno);
    return sync_directory(directory);
}

}  // namespace dcs::backup
