#include "grainserver/files/small_file.h"

#include <algorithm>
#include <cerrno>
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/beneath.h"
#include "base/planted.h"

namespace dcs::files {
namespace {
constexpr int depth_max = 200;  // of a tree that a grain left in its directory

// For people: where the descriptor leads now.
std::string path_of(int fd) {
    const std::string link = "/proc/self/fd/" + std::to_string(fd);
    char path[4096];
    const ssize_t length = ::readlink(link.c_str(), path, sizeof path);
    return length > 0 ? std::string(path, static_cast<std::size_t>(length)) : link;
}

Status read_whole(int fd, const std::string &name, std::size_t max, bool cut, std::string &content) {
    struct stat st{};
    if (::fstat(fd, &st) != 0) return file_error(name, errno);
    if (!S_ISREG(st.st_mode)) return fail(Code::io_error, name + " is not a regular file");
    content.resize(std::min<std::size_t>(static_cast<std::size_t>(st.st_size) + 1, max + 1));
    std::size_t length = 0;
    for (;;) {
        if (length == content.size()) {
            if (length > max) break;
            content.resize(std::min(content.size() * 2 + 1, max + 1));
        }
        const ssize_t n = ::read(fd, content.data() + length, content.size() - length);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return file_error(name, errno);
        if (n == 0) break;
        length += static_cast<std::size_t>(n);
    }
    if (length > max && !cut) return fail(Code::limit, name + " is longer than " + std::to_string(max) + " bytes");
    content.resize(std::min(length, max));
    return Status::ok();
}

Result<std::string> read_some(int directory, const std::string &name, std::size_t max, bool cut) {
    Fd fd(::openat(directory, name.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY));
    if (!fd) return file_error(name, errno);
    return read_open(fd.get(), name, max, cut);
}

Status write_all(int fd, const std::string &name, std::string_view content) {
    while (!content.empty()) {
        const ssize_t n = ::write(fd, content.data(), content.size());
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return file_error(name, errno);
        content.remove_prefix(static_cast<std::size_t>(n));
    }
    return Status::ok();
}

// Only a directory's own: by now there may be a link to somebody's file under its name.
bool unlock(int parent, const std::string &name) {
    const Fd fd(::openat(parent, name.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    return fd && ::chmod(("/proc/self/fd/" + std::to_string(fd.get())).c_str(), 0700) == 0;
}

Status remove_tree_below(int parent, const std::string &name, int depth) {
    if (::unlinkat(parent, name.c_str(), 0) == 0 || errno == ENOENT) return Status::ok();
    const int why = errno;
    if (why != EISDIR && why != EPERM) return file_error(name, why);
    if (::unlinkat(parent, name.c_str(), AT_REMOVEDIR) == 0) return Status::ok();
    if (depth > depth_max) return fail(Code::io_error, name + ": nested too deeply to be removed");
    const int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC | (planted("files.remove.follow") ? 0 : O_NOFOLLOW);
    const auto enter = [&] {
        const bool plain = parent == AT_FDCWD || (flags & O_NOFOLLOW) == 0;
        return Fd(plain ? ::openat(parent, name.c_str(), flags) : open_beneath(parent, name.c_str(), flags));
    };
    Fd fd = enter();
    if (!fd && errno == EACCES && unlock(parent, name)) fd = enter();
    if (!fd) return errno == ENOENT ? Status::ok() : file_error(name, errno);
    Result<std::vector<std::string>> names = list(fd.get());
    if (!names) return names.status();
    for (const std::string &inner : *names)
        if (Status s = remove_tree_below(fd.get(), inner, depth + 1); !s) {
            // Once more only where that could help: two attempts at each level of a deep tree would never end.
            struct stat st{};
            if (::fstat(fd.get(), &st) != 0 || (st.st_mode & 0700) == 0700 || ::fchmod(fd.get(), 0700) != 0) return s;
            if (s = remove_tree_below(fd.get(), inner, depth + 1); !s) return s;
        }
    if (::unlinkat(parent, name.c_str(), AT_REMOVEDIR) != 0 && errno != ENOENT) return file_error(name, errno);
    return Status::ok();
}
}  // namespace

Fd &Fd::operator=(Fd &&other) noexcept {
    if (this != &other) {
        if (fd_ >= 0) ::close(fd_);
        fd_ = std::exchange(other.fd_, -1);
    }
    return *this;
}
Fd::~Fd() {
    if (fd_ >= 0) ::close(fd_);
}

Status file_error(const std::string &what, int error) {
    Code code = Code::io_error;
    if (error == ENOENT || error == ENOTDIR) code = Code::not_found;
    if (error == ENOSPC || error == EDQUOT) code = Code::no_space;
    return fail_errno(code, what, error);
}

Result<Fd> open_directory(int parent, const std::string &name) {
    Fd fd(::openat(parent, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!fd) return file_error(name, errno);
    return fd;
}

Status make_directories(const std::string &path) {
    for (std::size_t slash = 1; slash != std::string::npos;) {
        slash = path.find('/', slash);
        const std::string part = path.substr(0, slash);
        const bool made = ::mkdir(part.c_str(), 0700) == 0;
        if (!made && errno != EEXIST) return file_error(part, errno);
        if (made && slash != std::string::npos && ::geteuid() == 0 && ::chmod(part.c_str(), 0711) != 0)
            return file_error(part, errno);
        if (slash != std::string::npos) ++slash;
    }
    struct stat st{};
    if (::stat(path.c_str(), &st) != 0) return file_error(path, errno);
    return S_ISDIR(st.st_mode) ? Status::ok() : fail(Code::io_error, path + " is not a directory");
}

Result<std::string> read_open(int fd, const std::string &name, std::size_t max, bool cut) {
    std::string content;
    if (Status s = read_whole(fd, name, max, cut, content); !s) return s;
    return content;
}

Result<std::string> read_file(int directory, const std::string &name, std::size_t max) {
    return read_some(directory, name, max, false);
}
Result<std::string> read_start(int directory, const std::string &name, std::size_t max) {
    return read_some(directory, name, max, true);
}

namespace {
Status replace_file(int directory, const std::string &name, std::string_view content, bool durably) {
    const std::string temporary = name + ".tmp";
    ::unlinkat(directory, temporary.c_str(), 0);
    Fd fd(::openat(directory, temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!fd) return file_error(temporary, errno);
    Status s = write_all(fd.get(), temporary, content);
    if (s && durably && ::fsync(fd.get()) != 0) s = file_error(temporary, errno);
    if (s && ::close(fd.release()) != 0) s = file_error(temporary, errno);
    if (s && ::renameat(directory, temporary.c_str(), directory, name.c_str()) != 0) s = file_error(name, errno);
    if (!s) ::unlinkat(directory, temporary.c_str(), 0);
    if (s && durably && ::fsync(directory) != 0) s = file_error(name, errno);
    return s;
}
}  // namespace

Status write_file(int directory, const std::string &name, std::string_view content) {
    return replace_file(directory, name, content, false);
}
Status write_durably(int directory, const std::string &name, std::string_view content) {
    return replace_file(directory, name, content, true);
}

bool exists(int directory, const std::string &name) {
    struct stat st{};
    return ::fstatat(directory, name.c_str(), &st, AT_SYMLINK_NOFOLLOW) == 0;
}

std::int64_t size_of(int directory, const std::string &name) {
    struct stat st{};
    if (::fstatat(directory, name.c_str(), &st, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(st.st_mode)) return -1;
    return st.st_size;
}

void remove_file(int directory, const std::string &name) { ::unlinkat(directory, name.c_str(), 0); }

Result<std::vector<std::string>> list(int directory) {
    const auto failed = [&](int error) { return file_error("listing " + path_of(directory), error); };
    const int copy = ::openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (copy < 0) return failed(errno);
    DIR *dir = ::fdopendir(copy);
    if (dir == nullptr) {
        const int error = errno;
        ::close(copy);
        return failed(error);
    }
    std::vector<std::string> names;
    errno = 0;
    while (const dirent *entry = ::readdir(dir)) {
        const std::string name = entry->d_name;
        if (name != "." && name != "..") names.push_back(name);
        errno = 0;
    }
    const int error = errno;
    ::closedir(dir);
    if (error != 0) return failed(error);
    std::sort(names.begin(), names.end());
    return names;
}

Status remove_tree(int parent, const std::string &name) { return remove_tree_below(parent, name, 0); }

}  // namespace dcs::files
