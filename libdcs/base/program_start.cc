#include "base/program_start.h"

#include <csignal>

#include <fcntl.h>
#include <malloc.h>

namespace dcs {
namespace {

constexpr int piece = 4 << 20;  // what is larger goes back at once
constexpr int kept = 16 << 20;  // of each thread's heap

}  // namespace

void clean_start() {
    std::signal(SIGCHLD, SIG_DFL);
    for (int fd = 0; fd <= 2; ++fd)
        if (::fcntl(fd, F_GETFD) < 0 && ::open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY) != fd) return;
}

void keep_buffers() {
    (void)::mallopt(M_MMAP_THRESHOLD, piece);
    (void)::mallopt(M_TRIM_THRESHOLD, kept);
}

}  // namespace dcs
