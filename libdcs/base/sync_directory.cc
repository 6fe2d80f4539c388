#include "base/sync_directory.h"

#include <cerrno>

#include <fcntl.h>
#include <unistd.h>

namespace dcs {

Status sync_directory(const std::string &directory) {
    const int fd = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const bool done = fd >= 0 && ::fsync(fd) == 0;
    const int why = errno;
    if (fd >= 0) ::close(fd);
    return done ? Status::ok() : fail_errno(Code::io_error, "syncing " + directory, why);
}

}  // namespace dcs
