#include "process/clean_start.h"

#include <csignal>

#include <fcntl.h>

namespace dcs {

void clean_start() {
    std::signal(SIGCHLD, SIG_DFL);
    for (int fd = 0; fd <= 2; ++fd)
        if (::fcntl(fd, F_GETFD) < 0 && ::open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY) != fd) return;
}

}  // namespace dcs
