#include "scheduler/keeper/settings_file.h"

#include <cerrno>
#include <cstdlib>
#include <string_view>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"
#include "base/trusted_path.h"

namespace dcs::keeper {
namespace {

constexpr std::size_t max_file_bytes = 16u << 20;

std::string without_line_of(std::string_view text, const std::string &host) {
    std::string kept;
    while (!text.empty()) {
        const std::size_t end = text.find('\n');
        const std::string_view line = text.substr(0, end == std::string_view::npos ? end : end + 1);
        text.remove_prefix(line.size());
        const std::size_t from = line.find_first_not_of(" \t\r\n");
        const std::string_view rest = from == std::string_view::npos ? "" : line.substr(from);
        if (rest.substr(0, rest.find_first_of(" \t\r\n#")) != host) kept += line;
    }
    return kept;
}

// In the place of `file`, with its mode; after a power failure there is the old one or the new one.
Status replace_file(const std::string &file, const std::string &text) {
    const std::string fresh = file + ".new";
    const auto failed = [&] {
        const Status why = fail_errno(Code::io_error, "cannot write " + fresh, errno);
        ::unlink(fresh.c_str());
        return why;
    };
    struct stat st {};
    if (::stat(file.c_str(), &st) != 0) return fail_errno(Code::io_error, file, errno);
    ::unlink(fresh.c_str());
    Fd fd(::open(fresh.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!fd) return failed();
    const bool same_owner = ::fchown(fd.get(), st.st_uid, st.st_gid) == 0 || ::geteuid() != 0;
    if (!same_owner || ::fchmod(fd.get(), st.st_mode & 0777) != 0 || !write_all(fd.get(), text) ||
        ::fsync(fd.get()) != 0 || !fd.close_checked())
        return failed();
    return ::rename(fresh.c_str(), file.c_str()) == 0 ? Status::ok() : failed();
}

}  // namespace

Result<int> open_settings(const std::string &file, const std::string &what) {
    if (Status s = trusted_path(file); !s) return s;
    if (const int fd = ::open(file.c_str(), O_RDONLY | O_CLOEXEC); fd >= 0) return fd;
    const int error = errno;
    Status why = fail_errno(error == ENOENT ? Code::not_found : Code::io_error, what + " " + file, error);
    if (what == "the host table" && error == ENOENT)
        why.text += "; it has a line for each host, such as `local1 slots=2`";
    return why;
}

Result<std::string> read_settings(int fd, const std::string &file, const std::string &what) {
    const Fd own(fd);
    std::string text;  // of a pipe, too: the table may come out of a program
    if (!read_to_end(fd, max_file_bytes, text))
        return fail_errno(Code::io_error, what + " " + file + " cannot be read", errno);
    if (text.size() > max_file_bytes) return fail(Code::limit, what + " " + file + " is larger than 16 MiB");
    return text;
}

Result<std::string> read_settings(const std::string &file, const std::string &what) {
    const Result<int> fd = open_settings(file, what);
    if (!fd) return fd.status();
    return read_settings(*fd, file, what);
}

Status remove_from_host_table(const std::string &file, const std::string &host) {
    const Result<std::string> text = read_settings(file, "the host table");
    if (!text) return text.status();
    char *real = ::realpath(file.c_str(), nullptr);  // the file itself, not a link to it
    const std::string path = real != nullptr ? real : file;
    ::free(real);
    const std::string kept = without_line_of(*text, host);
    return kept == *text ? Status::ok() : replace_file(path, kept);
}

}  // namespace dcs::keeper
