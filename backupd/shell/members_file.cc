#include "backupd/shell/members_file.h"

#include <algorithm>
#include <cerrno>
#include <sstream>

#include <fcntl.h>

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
    std::string text;
    for (const auto &[host, key] : members) text += host + " " + hex_of(std::string(key.begin(), key.end())) + "\n";
    const Status s = replace_durably(AT_FDCWD, directory + file_name, text);
    return s ? s : fail(s.code, "cannot write " + s.text);
}

}  // namespace dcs::backup
