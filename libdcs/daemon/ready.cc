#include "daemon/ready.h"

#include <cerrno>

#include "base/files.h"

namespace dcs {

Status tell_ready(int fd) {
    if (fd < 0) return Status::ok();
    const Fd own(fd);
    const int error = write_all(fd, "ready\n") ? 0 : errno;
    if (error == 0 || error == EPIPE) return Status::ok();
    return fail_errno(Code::io_error, "cannot write to the descriptor of --ready-fd", error);
}

}  // namespace dcs
