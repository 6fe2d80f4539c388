#include "base/program_start.h"

#include <csignal>

#include <fcntl.h>
#include <malloc.h>
#include <unistd.h>

namespace dcs {
namespace {

constexpr int piece = 4 << 20;  // what is larger goes back at once
constexpr int kept = 16 << 20;  // of each thread's heap

}  // namespace

std::string own_path() {
    char path[4096];
    const ssize_t n = ::readlink("/proc/self/exe", path, sizeof path - 1);
    return std::string(path, n > 0 ? static_cast<std::size_t>(n) : 0);
}

std::string own_folder() {
    const std::string path = own_path();
    return path.substr(0, path.rfind('/'));
}

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
