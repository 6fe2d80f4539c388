#include <cstring>

#include "call.h"

int main(int argc, char **argv) {
    const char *name = argc > 0 ? argv[0] : "";
    if (const char *slash = std::strrchr(name, '/')) name = slash + 1;
    const std::vector<std::string> line(argv + (argc > 0), argv + argc);
    const dcs::locks::World &world = dcs::locks::this_world();
    return std::strcmp(name, "flock") == 0 ? dcs::lock_command::run_flock(world, line)
                                           : dcs::lock_command::run_lock_command(world, line);
}
