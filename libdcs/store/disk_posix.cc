#include "store/disk_posix.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <utility>

#include "base/files.h"
#include "store/path_opener.h"
#include "store/names.h"

namespace dcs::store {
namespace {

constexpr std::size_t early_bytes = 64 * 1024;

class PosixDisk final : public Disk {
public:
    PosixDisk(Fd root, const std::string &directory, bool reports, bool one_call)
        : below_(std::move(root), directory, one_call), directory_(directory), reports_(reports) {}
    Status create(const std::string &path, std::string_view bytes) override;
    Status truncate_append(const std::string &path, std::uint64_t length, std::string_view bytes) override;
    Status overwrite(const std::string &path, std::uint64_t offset, std::string_view bytes) override;
    Status rewrite(const std::string &path, std::string_view bytes) override;
    Result<std::string> read(const std::string &path, std::uint64_t offset, std::uint64_t max) override;
    Result<std::uint64_t> read_into(const std::string &path, std::uint64_t offset, std::span<char> room) override;
    Result<std::uint64_t> size(const std::string &path) override;
    Result<Fd> open_large(const std::string &path, bool to_write) override;
    Status rename(const std::string &from, const std::string &to) override;
    Status link(const std::string &from, const std::string &to) override;
    Status remove(const std::string &path) override;
    Result<bool> make_dir(const std::string &path) override;
    Status remove_dir(const std::string &path) override;
    Result<std::vector<std::string>> list(const std::string &path) override;
    Status sync_file(const std::string &path) override;
    Status sync_dir(const std::string &path) override;
    Status sync_all() override;
    void write_back(const std::string &path) override;
    bool sync_all_reports() const override { return reports_; }
    Result<std::uint64_t> free_bytes() override;
    Result<std::uint64_t> free_files() override;

private:
    Status failed(const char *what, const std::string &path, int error) const {
        return below_.failed(what, path, error);
    }
    Result<struct statvfs> room();
    Result<Fd> open_file(const std::string &path, int flags, std::uint64_t *size);
    Status write_at(int fd, std::uint64_t offset, std::string_view bytes, const std::string &path);
    Result<std::vector<std::string>> read_names(DIR *stream, const std::string &path);

    void forget(const std::string &path) {
        if (path == kept_path_) kept_ = Fd();
    }

    PathOpener below_;
    const std::string directory_;
    const bool reports_;
    // The file that was overwritten last.
    Fd kept_;
    std::string kept_path_;
    std::uint64_t kept_size_ = 0;
};

// Opens a regular file, checked by the descriptor, not the name.
Result<Fd> PosixDisk::open_file(const std::string &path, int flags, std::uint64_t *size) {
    Result<Fd> fd = below_.open(path, flags);
    if (!fd) return fd;
    struct stat about;
    if (::fstat(fd->get(), &about) != 0) return failed("stat", path, errno);
    if (!S_ISREG(about.st_mode)) return fail(Code::io_error, join(directory_, path) + " is not a regular file");
    *size = static_cast<std::uint64_t>(about.st_size);
    return fd;
}

Status PosixDisk::write_at(int fd, std::uint64_t offset, std::string_view bytes, const std::string &path) {
    const bool done = pwrite_all(fd, bytes, static_cast<std::int64_t>(offset));
    return done ? Status::ok() : failed("write", path, errno);
}

Status PosixDisk::create(const std::string &path, std::string_view bytes) {
    Result<Fd> fd = below_.open(path, O_WRONLY | O_CREAT | O_EXCL);
    if (!fd) return fd.status();
    if (Status status = write_at(fd->get(), 0, bytes, path); !status) return status;
    return fd->close_checked() ? Status::ok() : failed("close", path, errno);
}

Status PosixDisk::truncate_append(const std::string &path, std::uint64_t length, std::string_view bytes) {
    forget(path);
    // A missing file with recorded content is not created.
    std::uint64_t size = 0;
    Result<Fd> fd = open_file(path, O_WRONLY | (length == 0 ? O_CREAT : 0), &size);
    if (!fd) return fd.status();
    if (size < length)
        return fail(Code::io_error, join(directory_, path) + " has " + std::to_string(size) + " bytes, but " +
                                        std::to_string(length) + " were recorded: restore it");
    while (size > length && ::ftruncate(fd->get(), static_cast<off_t>(length)) != 0)
        if (errno != EINTR) return failed("truncate", path, errno);
    if (Status status = write_at(fd->get(), length, bytes, path); !status) return status;
    return fd->close_checked() ? Status::ok() : failed("close", path, errno);
}

Status PosixDisk::overwrite(const std::string &path, std::uint64_t offset, std::string_view bytes) {
    if (!kept_ || path != kept_path_) {
        kept_ = Fd();
        Result<Fd> fd = open_file(path, O_WRONLY, &kept_size_);
        if (!fd) return fd.status();
        kept_ = std::move(*fd);
        kept_path_ = path;
    }
    if (offset > kept_size_ || bytes.size() > kept_size_ - offset)
        return fail(Code::io_error, join(directory_, path) + " is shorter than it was made");
    return write_at(kept_.get(), offset, bytes, path);
}

Status PosixDisk::rewrite(const std::string &path, std::string_view bytes) {
    forget(path);
    std::uint64_t size = 0;
    Result<Fd> fd = open_file(path, O_WRONLY, &size);
    if (!fd) return fd.status();
    if (Status status = write_at(fd->get(), 0, bytes, path); !status) return status;
    while (size > bytes.size() && ::ftruncate(fd->get(), static_cast<off_t>(bytes.size())) != 0)
        if (errno != EINTR) return failed("truncate", path, errno);
    // It will be synced with others: the disk need not wait for the last one to be written. A hint, which may fail.
    if (bytes.size() >= early_bytes) (void)::sync_file_range(fd->get(), 0, 0, SYNC_FILE_RANGE_WRITE);
    return fd->close_checked() ? Status::ok() : failed("close", path, errno);
}

Result<std::string> PosixDisk::read(const std::string &path, std::uint64_t offset, std::uint64_t max) {
    std::uint64_t size = 0;
    Result<Fd> fd = open_file(path, O_RDONLY, &size);
    if (!fd) return fd.status();
    std::string bytes;
    if (offset >= size) return bytes;
    bytes.resize(std::min(max, size - offset));
    if (!pread_all(fd->get(), bytes, static_cast<std::int64_t>(offset))) return failed("read", path, errno);
    return bytes;
}

Result<std::uint64_t> PosixDisk::read_into(const std::string &path, std::uint64_t offset, std::span<char> room) {
    std::uint64_t size = 0;
    Result<Fd> fd = open_file(path, O_RDONLY, &size);
    if (!fd) return fd.status();
    std::size_t have = 0;
    while (have < room.size()) {
        const auto at = static_cast<off_t>(offset + have);
        const ssize_t n = ::pread(fd->get(), room.data() + have, room.size() - have, at);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return failed("read", path, errno);
        if (n == 0) break;
        have += static_cast<std::size_t>(n);
    }
    return std::uint64_t{have};
}

Result<std::uint64_t> PosixDisk::size(const std::string &path) {
    Result<PathOpener::Place> place = below_.locate(path);
    if (!place) return place.status();
    struct stat about;
    if (::fstatat(place->at, place->name.c_str(), &about, AT_SYMLINK_NOFOLLOW) != 0) return failed("stat", path, errno);
    if (!S_ISREG(about.st_mode)) return fail(Code::io_error, join(directory_, path) + " is not a regular file");
    return static_cast<std::uint64_t>(about.st_size);
}

Status PosixDisk::rename(const std::string &from, const std::string &to) {
    forget(from);
    forget(to);
    Result<PathOpener::Place> source = below_.locate(from);
    if (!source) return source.status();
    const bool same = parent_of(from) == parent_of(to);  // the usual case: saves one descriptor
    if (same && !valid_path(to)) return fail(Code::invalid, "`" + to + "` is not a path");
    Result<PathOpener::Place> target =
        same ? Result<PathOpener::Place>(PathOpener::Place{Fd(), source->at, to.substr(to.rfind('/') + 1)})
             : below_.locate(to);
    if (!target) return target.status();
    if (::renameat(source->at, source->name.c_str(), target->at, target->name.c_str()) != 0)
        return failed("rename to", to, errno);
    return Status::ok();
}

Status PosixDisk::link(const std::string &from, const std::string &to) {
    Result<PathOpener::Place> source = below_.locate(from);
    if (!source) return source.status();
    Result<PathOpener::Place> target = below_.locate(to);
    if (!target) return target.status();
    if (::linkat(source->at, source->name.c_str(), target->at, target->name.c_str(), 0) != 0)
        return failed("link to", to, errno);
    return Status::ok();
}

Status PosixDisk::remove(const std::string &path) {
    forget(path);
    Result<PathOpener::Place> place = below_.locate(path);
    if (!place) return place.status().code == Code::not_found ? Status::ok() : place.status();
    if (::unlinkat(place->at, place->name.c_str(), 0) != 0 && errno != ENOENT) return failed("remove", path, errno);
    return Status::ok();
}

Result<bool> PosixDisk::make_dir(const std::string &path) {
    Result<PathOpener::Place> place = below_.locate(path);
    if (!place) return place.status();
    if (::mkdirat(place->at, place->name.c_str(), 0700) == 0) return true;
    if (errno != EEXIST) return failed("make directory", path, errno);
    struct stat about;
    if (::fstatat(place->at, place->name.c_str(), &about, AT_SYMLINK_NOFOLLOW) != 0) return failed("stat", path, errno);
    if (!S_ISDIR(about.st_mode)) return fail(Code::io_error, join(directory_, path) + " is not a directory");
    return false;
}

Status PosixDisk::remove_dir(const std::string &path) {
    Result<PathOpener::Place> place = below_.locate(path);
    if (!place) return place.status().code == Code::not_found ? Status::ok() : place.status();
    if (::unlinkat(place->at, place->name.c_str(), AT_REMOVEDIR) == 0 || errno == ENOENT) return Status::ok();
    if (errno == ENOTEMPTY || errno == EEXIST)
        return fail_errno(Code::refused, "remove directory " + join(directory_, path), errno);
    return failed("remove directory", path, errno);
}

Result<std::vector<std::string>> PosixDisk::read_names(DIR *stream, const std::string &path) {
    std::vector<std::string> names;
    while (true) {
        errno = 0;
        const dirent *entry = ::readdir(stream);
        if (!entry && errno != 0) return failed("list", path, errno);
        if (!entry) break;
        std::string name = entry->d_name;
        if (name == "." || name == "..") continue;
        bool is_directory = entry->d_type == DT_DIR;
        if (entry->d_type == DT_UNKNOWN) {
            struct stat about;
            if (::fstatat(::dirfd(stream), entry->d_name, &about, AT_SYMLINK_NOFOLLOW) != 0)
                return failed("stat", join(path, name), errno);
            is_directory = S_ISDIR(about.st_mode);
        }
        if (is_directory) name += '/';
        names.push_back(std::move(name));
    }
    std::sort(names.begin(), names.end());
    return names;
}

Result<std::vector<std::string>> PosixDisk::list(const std::string &path) {
    Result<Fd> fd = below_.open(path, O_RDONLY | O_DIRECTORY);
    if (!fd) return fd.status();
    DIR *stream = ::fdopendir(fd->get());
    if (!stream) return failed("list", path, errno);
    (void)fd->release();  // the stream owns it now
    Result<std::vector<std::string>> names = read_names(stream, path);
    (void)::closedir(stream);
    return names;
}

Result<Fd> PosixDisk::open_large(const std::string &path, bool to_write) {
    forget(path);
    std::uint64_t size = 0;
    return open_file(path, to_write ? O_WRONLY : O_RDONLY, &size);
}

// fdatasync: content and length suffice; it omits the times.
Status PosixDisk::sync_file(const std::string &path) {
    if (kept_ && path == kept_path_) return ::fdatasync(kept_.get()) == 0 ? Status::ok() : failed("sync", path, errno);
    Result<Fd> fd = below_.open(path, O_RDONLY);
    if (!fd) return fd.status();
    if (::fdatasync(fd->get()) != 0) return failed("sync", path, errno);
    return fd->close_checked() ? Status::ok() : failed("close", path, errno);
}

Status PosixDisk::sync_dir(const std::string &path) {
    Result<Fd> fd = below_.open(path, O_RDONLY | O_DIRECTORY);
    if (!fd) return fd.status();
    if (::fsync(fd->get()) != 0) return failed("sync directory", path, errno);
    return fd->close_checked() ? Status::ok() : failed("close", path, errno);
}

void PosixDisk::write_back(const std::string &path) {
    if (const Result<Fd> fd = below_.open(path, O_RDONLY))
        (void)::sync_file_range(fd->get(), 0, 0, SYNC_FILE_RANGE_WRITE);  // errors show at the sync
}

// On the long-lived descriptor, which reports every error since it was opened.
Status PosixDisk::sync_all() {
    return ::syncfs(below_.root()) == 0 ? Status::ok() : failed("sync the file system of", "", errno);
}

Result<struct statvfs> PosixDisk::room() {
    struct statvfs about;
    while (::fstatvfs(below_.root(), &about) != 0)
        if (errno != EINTR) return failed("ask for free space of", "", errno);
    return about;
}

Result<std::uint64_t> PosixDisk::free_bytes() {
    const auto about = room();
    if (!about) return about.status();
    return static_cast<std::uint64_t>(about->f_bavail) * about->f_frsize;
}

Result<std::uint64_t> PosixDisk::free_files() {
    const auto about = room();
    if (!about) return about.status();
    return about->f_files == 0 ? UINT64_MAX : static_cast<std::uint64_t>(about->f_favail);
}

// syncfs reports lost writes since Linux 5.8.
bool syncfs_reports() {
    struct utsname about;
    int major = 0, minor = 0;
    if (::uname(&about) != 0) return false;
    if (std::sscanf(about.release, "%d.%d", &major, &minor) != 2) return false;
    return major > 5 || (major == 5 && minor >= 8);
}

}  // namespace

Status check_file_system(long magic, const std::string &directory) {
    const char *name = nullptr;
    switch (static_cast<unsigned long>(magic) & 0xFFFFFFFFul) {
    case 0x6969: name = "NFS"; break;
    case 0x517B: name = "SMB"; break;
    case 0xFE534D42: name = "SMB2"; break;
    case 0xFF534D42: name = "CIFS"; break;
    case 0x5346414F: name = "AFS"; break;
    default: return Status::ok();
    }
    return fail(Code::refused, directory + " is on a network file system (" + name +
                                   "), which may lose acknowledged writes after a "
                                   "failure: use a directory on a local disk");
}

Result<std::unique_ptr<Disk>> open_posix_disk(const std::string &directory, bool one_call) {
    Fd root(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!root) {
        const Code code = errno == EACCES || errno == EPERM ? Code::refused : code_of(errno);
        return fail_errno(code, "open state directory " + directory, errno);
    }
    struct statfs about;
    if (::fstatfs(root.get(), &about) != 0)
        return fail_errno(Code::io_error, "ask for the file system of " + directory, errno);
    if (Status status = check_file_system(static_cast<long>(about.f_type), directory); !status) return status;
    return std::unique_ptr<Disk>(std::make_unique<PosixDisk>(std::move(root), directory, syncfs_reports(), one_call));
}

}  // namespace dcs::store
