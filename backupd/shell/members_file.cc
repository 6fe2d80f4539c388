#include "backupd/shell/members_file.h"

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <sstream>

#include <fcntl.h>
#include <unistd.h>

#include "base/failpoint.h"
#include "base/sync_directory.h"
#include "base/hex.h"

namespace dcs::backup {
namespace {

constexpr const char *file_name = "/members";

Status write_whole(int fd, const std::string &path, const std::string &text) {
    std::size_t done = 0;
    while (done < text.size()) {
        const ssize_t n = ::write(fd, text.data() + done, text.size() - done);
        if (n < 0 && errno != EINTR) return fail_errno(Code::io_error, "writing " + path, errno);
        if (n > 0) done += static_cast<std::size_t>(n);
    }
    return ::fsync(fd) == 0 ? Status::ok() : fail_errno(Code::io_error, "writing " + path, errno);
}

}  // namespace

Result<Members> read_members(const std::string &directory) {
    const std::string path = directory + file_name;
    Members members;
    std::ifstream file(path);
    if (!file.is_open() && errno == ENOENT) return members;
    if (!file.is_open()) return fail_errno(Code::io_error, "reading " + path, errno);
    for (std::string line; std::getline(file, line);) {
        std::string host, key;
        std::istringstream words(line);
        words >> host >> key;
        const auto bytes = bytes_of_hex(key, sizeof(TokenHash));
        if (host.empty() || !bytes)
            return fail(Code::io_error, path + " is damaged; remove it, the scheduler tells it again");
        std::copy(bytes->begin(), bytes->end(), members[host].begin());
    }
    return members;
}

Status write_members(const std::string &directory, const Members &members) {
    const std::string path = directory + file_name, fresh = path + ".new";
    std::string text;
    for (const auto &[host, key] : members) text += host + " " + hex_of(std::string(key.begin(), key.end())) + "\n";
    failpoint("backup.members.before_write");
    const int fd = ::open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0) return fail_errno(Code::io_error, "writing " + fresh, errno);
    const Status written = write_whole(fd, fresh, text);
    ::close(fd);
    if (!written) return written;
    failpoint("backup.members.before_rename");
    if (::rename(fresh.c_str(), path.c_str()) != 0) return fail_errno(Code::io_error, "writing " + path, errno);
    return sync_directory(directory);
}

}  // namespace dcs::backup
