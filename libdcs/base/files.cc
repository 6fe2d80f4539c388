#include "base/files.h"

#include <algorithm>
#include <cerrno>
#include <climits>

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/beneath.h"
#include "base/planted.h"
#include "base/require.h"

namespace dcs {
namespace {

constexpr std::size_t first_read = 16384;  // most files of the kernel in one go

// For people: where the descriptor leads now.
std::string path_of(int fd) {
    const std::string link = "/proc/self/fd/" + std::to_string(fd);
    char path[4096];
    const ssize_t length = ::readlink(link.c_str(), path, sizeof path);
    return length > 0 ? std::string(path, static_cast<std::size_t>(length)) : link;
}

// Only a directory's own: by now a link to another file may have its name.
bool unlock(int parent, const std::string &name) {
    const Fd fd(::openat(parent, name.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    return fd && ::chmod(("/proc/self/fd/" + std::to_string(fd.get())).c_str(), 0700) == 0;
}

Fd enter(int parent, const std::string &name) {
    const int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC | (planted("files.remove.follow") ? 0 : O_NOFOLLOW);
    const bool plain = parent == AT_FDCWD || (flags & O_NOFOLLOW) == 0;
    const auto open = [&] {
        return Fd(plain ? ::openat(parent, name.c_str(), flags) : open_beneath(parent, name.c_str(), flags));
    };
    Fd fd = open();
    if (!fd && errno == EACCES && unlock(parent, name)) fd = open();
    return fd;
}

}  // namespace

Status file_error(const std::string &what, int error) {
    Code code = Code::io_error;
    if (error == ENOENT || error == ENOTDIR) code = Code::not_found;
    if (error == ENOSPC || error == EDQUOT || error == EFBIG) code = Code::no_space;
    return fail_errno(code, what, error);
}

Result<Fd> open_directory(int parent, const std::string &name) {
    Fd fd(::openat(parent, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!fd) return file_error(name, errno);
    return fd;
}

Status make_directory(const std::string &path) {
    if (::mkdir(path.c_str(), 0700) == 0 || errno == EEXIST) return Status::ok();
    return file_error("cannot make the directory " + path, errno);
}

Status make_directories(const std::string &path, mode_t above) {
    for (std::size_t slash = 1; slash != std::string::npos;) {
        slash = path.find('/', slash);
        const std::string part = path.substr(0, slash);
        const bool made = ::mkdir(part.c_str(), 0700) == 0;
        if (!made && errno != EEXIST) return file_error("cannot make the directory " + part, errno);
        if (made && slash != std::string::npos && above != 0700 && ::chmod(part.c_str(), above) != 0)
            return file_error("cannot make the directory " + part, errno);
        if (slash != std::string::npos) ++slash;
    }
    struct stat st {};
    if (::stat(path.c_str(), &st) != 0) return file_error("cannot make the directory " + path, errno);
    return S_ISDIR(st.st_mode) ? Status::ok() : fail(Code::io_error, path + " is not a directory");
}

Status sync_directory(const std::string &directory) {
    const Fd fd(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (fd && ::fsync(fd.get()) == 0) return Status::ok();
    return fail_errno(Code::io_error, "cannot sync " + directory, errno);
}

bool read_to_end(int fd, std::size_t max, std::string &content, std::size_t expected) {
    DCS_REQUIRE(max < SIZE_MAX, "there is room for the byte that tells of more");
    content.resize(std::min(std::max(expected, first_read) + 1, max + 1));
    std::size_t length = 0;
    for (;;) {
        if (length == content.size()) {
            if (length > max) break;
            content.resize(std::min(content.size() * 2 + 1, max + 1));
        }
        const ssize_t n = ::read(fd, content.data() + length, content.size() - length);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return false;
        if (n == 0) break;
        length += static_cast<std::size_t>(n);
    }
    content.resize(length);
    return true;
}

Result<std::string> read_open(int fd, const std::string &name, std::size_t max, bool cut) {
    struct stat st {};
    if (::fstat(fd, &st) != 0) return file_error(name, errno);
    if (!S_ISREG(st.st_mode)) return fail(Code::io_error, name + " is not a regular file");
    std::string content;
    if (!read_to_end(fd, max, content, static_cast<std::size_t>(st.st_size))) return file_error(name, errno);
    if (content.size() > max && !cut)
        return fail(Code::limit, name + " is longer than " + std::to_string(max) + " bytes");
    content.resize(std::min(content.size(), max));
    return content;
}

Result<std::string> read_file(int directory, const std::string &name, std::size_t max) {
    const Fd fd(::openat(directory, name.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY));
    return fd ? read_open(fd.get(), name, max, false) : file_error(name, errno);
}

bool write_all(int fd, std::string_view bytes) noexcept {
    while (!bytes.empty()) {
        const ssize_t n = ::write(fd, bytes.data(), bytes.size());
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return false;
        bytes.remove_prefix(static_cast<std::size_t>(n));
    }
    return true;
}

bool pwrite_all(int fd, std::string_view bytes, std::int64_t at) noexcept {
    DCS_REQUIRE(at >= 0, "a place in a file");
    while (!bytes.empty()) {
        const ssize_t n = ::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(at));
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return false;
        bytes.remove_prefix(static_cast<std::size_t>(n));
        at += n;
    }
    return true;
}

bool pread_all(int fd, std::string &bytes, std::int64_t at) {
    DCS_REQUIRE(at >= 0, "a place in a file");
    std::size_t have = 0;
    while (have < bytes.size()) {
        const ssize_t n = ::pread(fd, bytes.data() + have, bytes.size() - have, at + static_cast<off_t>(have));
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return false;
        if (n == 0) break;
        have += static_cast<std::size_t>(n);
    }
    bytes.resize(have);
    return true;
}

namespace {
Status replace(int directory, const std::string &name, std::string_view content, bool durably) {
    DCS_REQUIRE(directory == AT_FDCWD || name.find('/') == std::string::npos, "one plain name in the directory");
    const std::string temporary = name + ".tmp";
    const auto failed = [&](const std::string &file) {
        const int error = errno;
        return file_error(directory == AT_FDCWD ? file : path_of(directory) + "/" + file, error);
    };
    const auto make = [&] {
        return Fd(::openat(directory, temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
    };
    Fd fd = make();
    if (!fd && errno == EEXIST && ::unlinkat(directory, temporary.c_str(), 0) == 0) fd = make();  // of a killed process
    if (!fd) return failed(temporary);
    Status s;
    if (!write_all(fd.get(), content) || (durably && ::fsync(fd.get()) != 0) || !fd.close_checked())
        s = failed(temporary);
    if (s && ::renameat(directory, temporary.c_str(), directory, name.c_str()) != 0) s = failed(name);
    if (!s) ::unlinkat(directory, temporary.c_str(), 0);
    const auto sync = [&] {
        return directory == AT_FDCWD ? bool(sync_directory(name.substr(0, name.rfind('/') + 1) + "."))
                                     : ::fsync(directory) == 0;
    };
    if (s && durably && !sync()) s = failed(name);
    return s;
}
}  // namespace

Status replace_file(int directory, const std::string &name, std::string_view content) {
    return replace(directory, name, content, false);
}
Status replace_durably(int directory, const std::string &name, std::string_view content) {
    return replace(directory, name, content, true);
}

bool file_exists(int directory, const std::string &name) {
    struct stat st {};
    return ::fstatat(directory, name.c_str(), &st, AT_SYMLINK_NOFOLLOW) == 0;
}

void remove_file(int directory, const std::string &name) { ::unlinkat(directory, name.c_str(), 0); }

// Without a stream of the library, which takes three system calls more for each directory.
Result<bool> read_names(int directory, std::size_t most, std::vector<std::string> &names) {
    alignas(dirent64) char buffer[16384];
    while (names.size() <= most) {
        const ssize_t n = ::getdents64(directory, buffer, sizeof buffer);
        if (n < 0) return file_error("cannot list " + path_of(directory), errno);
        if (n == 0) return true;
        for (ssize_t at = 0; at < n;) {
            const auto *entry = reinterpret_cast<const dirent64 *>(buffer + at);
            const std::string_view name = entry->d_name;
            if (name != "." && name != "..") names.emplace_back(name);
            at += entry->d_reclen;
        }
    }
    return false;
}

Result<std::vector<std::string>> list_directory(int directory, std::size_t most) {
    const Fd fd(::openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!fd) return file_error("cannot list " + path_of(directory), errno);
    std::vector<std::string> names;
    if (const auto read = read_names(fd.get(), most, names); !read) return read.status();
    std::sort(names.begin(), names.end());
    return names;
}

namespace {
constexpr std::size_t deepest = 64, most_listed = 4096;
}  // namespace

// Of the directory that is open.
Status TreeRemoval::list(Level &level) {
    Result<std::vector<std::string>> names = list_directory(here_.get(), most_listed);
    if (!names) return names.status();
    level.left = std::move(*names);
    level.more = level.left.size() > most_listed;
    return Status::ok();
}

// To the top: a call far down costs as much as there are directories above, under Landlock milliseconds.
bool TreeRemoval::moved_up(int directory, const std::string &name) {
    if (levels_.size() < deepest || planted("files.remove.deep")) return false;
    const Fd top = enter(parent_, name_);
    struct stat st {};
    if (!top || ::fstat(top.get(), &st) != 0) return false;
    if (st.st_dev != levels_[0].device || st.st_ino != levels_[0].inode) return false;
    const std::string higher = "moved-" + std::to_string(++moved_);
    if (::renameat2(directory, name.c_str(), top.get(), higher.c_str(), RENAME_NOREPLACE) != 0) return false;
    levels_[0].left.push_back(higher);
    return true;
}

// True: the name is gone. False: it is a directory that is not empty, and the level that is worked on now.
Result<bool> TreeRemoval::take(int directory, const std::string &name) {
    if (::unlinkat(directory, name.c_str(), 0) == 0 || errno == ENOENT) return true;
    if (const int why = errno; why != EISDIR && why != EPERM) return file_error(name, why);
    if (::unlinkat(directory, name.c_str(), AT_REMOVEDIR) == 0) return true;
    Fd fd = enter(directory, name);
    if (!fd && errno == ENOENT) return true;
    struct stat st {};
    if (!fd || ::fstat(fd.get(), &st) != 0) return file_error(name, errno);
    // Root needs no mode; for others a failure shows below.
    if ((st.st_mode & 0700) != 0700) (void)::fchmod(fd.get(), 0700);
    if (moved_up(directory, name)) return true;
    levels_.push_back({name, st.st_dev, st.st_ino, {}, false});
    here_ = std::move(fd);
    if (Status s = list(levels_.back()); !s) return s;
    return false;
}

// The level is empty: the one above is worked on again, if it is still the one from which this one was entered.
Result<bool> TreeRemoval::leave() {
    const std::string name = std::move(levels_.back().name);
    levels_.pop_back();
    int above = parent_;
    if (!levels_.empty()) {
        Fd fd(::openat(here_.get(), "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
        struct stat st {};
        if (!fd || ::fstat(fd.get(), &st) != 0) return file_error(name, errno);
        const bool same = st.st_dev == levels_.back().device && st.st_ino == levels_.back().inode;
        if (!same && !planted("files.remove.any_parent"))
            return fail(Code::io_error, name + " was moved while it was being removed");
        here_ = std::move(fd);
        above = here_.get();
    }
    const std::string &known = levels_.empty() ? name_ : name;
    if (::unlinkat(above, known.c_str(), AT_REMOVEDIR) != 0 && errno != ENOENT) return file_error(known, errno);
    return levels_.empty();
}

Result<bool> TreeRemoval::go_on(int names) {
    if (levels_.empty())
        if (auto done = take(parent_, name_); !done || *done) return done;
    while (names-- > 0) {
        std::vector<std::string> &left = levels_.back().left;
        if (left.empty() && levels_.back().more) {
            if (Status s = list(levels_.back()); !s) return s;
            continue;
        }
        if (left.empty()) {
            if (auto done = leave(); !done || *done) return done;
            continue;
        }
        const std::string name = std::move(left.back());
        left.pop_back();
        if (auto done = take(here_.get(), name); !done) return done;
    }
    return false;
}

// Of files.h: all at once.
Status remove_tree(int parent, const std::string &name) {
    TreeRemoval tree(parent, name);
    return tree.go_on(INT_MAX).status();
}

}  // namespace dcs
