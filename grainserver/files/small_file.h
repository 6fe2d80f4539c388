#pragma once
// Files of our own, always by a descriptor of the directory and one plain name: no symbolic link is
// followed and nothing but a regular file is opened. `directory` may be AT_FDCWD with a path only where
// the path is our own. What a grain wrote is read by way of room.h.
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"

namespace dcs::files {

class Fd {
public:
    Fd() = default;
    explicit Fd(int fd) : fd_(fd) {}
    Fd(Fd &&other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    Fd &operator=(Fd &&other) noexcept;
    ~Fd();
    int get() const { return fd_; }
    explicit operator bool() const { return fd_ >= 0; }
    int release() { return std::exchange(fd_, -1); }

private:
    int fd_ = -1;
};

// Code::not_found if missing, no_space for a full disk, io_error otherwise; text names the file.
Status file_error(const std::string &what, int error);

Result<Fd> open_directory(int parent, const std::string &name);
// mkdir -p for our own directories, mode 0700. Those above the last, if root makes them, let others pass (0711): more
// than this one directory is to lie there.
Status make_directories(const std::string &path);

// Whole content; Code::limit if longer than `max`.
Result<std::string> read_file(int directory, const std::string &name, std::size_t max);
// As read_file, but takes the first `max` bytes of a longer file.
Result<std::string> read_start(int directory, const std::string &name, std::size_t max);
// The rest of an open regular file; `cut`: the first `max` bytes of a longer one. `name` is for the error.
Result<std::string> read_open(int fd, const std::string &name, std::size_t max, bool cut);
// `name`.tmp, then rename: a reader, also one after kill -9, sees the old content or the new one.
Status write_file(int directory, const std::string &name, std::string_view content);
// The same, and after a power failure too.
Status write_durably(int directory, const std::string &name, std::string_view content);
bool exists(int directory, const std::string &name);
// -1 unless it is a regular file.
std::int64_t size_of(int directory, const std::string &name);
void remove_file(int directory, const std::string &name);
// Names without "." and "..", sorted.
Result<std::vector<std::string>> list(int directory);
// A directory with all that is in it; symbolic links are removed, not followed. Missing is ok.
Status remove_tree(int parent, const std::string &name);

}  // namespace dcs::files
