#include <cstring>

#include <fcntl.h>

#include "call.h"

// A lock file must not become the standard error of a caller that closed it. The command finds these closed again.
static void fill_standard_descriptors() {
    for (int fd = 0; fd < 3; ++fd)
        if (::fcntl(fd, F_GETFD) < 0 && ::open("/dev/null", O_RDWR | O_CLOEXEC) != fd) return;
}

int main(int argc, char **argv) {
    const char *name = argc > 0 ? argv[0] : "";
    if (const char *slash = std::strrchr(name, '/')) name = slash + 1;
    fill_standard_descriptors();
    const std::vector<std::string> line(argv + (argc > 0), argv + argc);
    const dcs::locks::World &world = dcs::locks::this_world();
    return std::strcmp(name, "flock") == 0 ? dcs::lock_command::run_flock(world, line)
                                           : dcs::lock_command::run_lock_command(world, line);
}
