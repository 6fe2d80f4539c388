// dcs_container: runs a grain in a container, by the host's podman. It is linked statically, because it is also the
// first process in the container, whatever the image has.
//
//   dcs_container run ARCHIVE STORE DIGEST GRAINS RUNGS IMAGES_MB GPUS BROUGHT DIRECTORY PROGRAM ARGV...
//     by dcs_launcher. ARCHIVE is the number of an open descriptor.
//   dcs_container inside
//     by podman
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <unistd.h>

#include "grainserver/container/inside.h"
#include "grainserver/container/outside.h"

int main(int count, char **words) {
    using namespace dcs::container;
    if (count == 2 && std::strcmp(words[1], "inside") == 0) return run_inside();
    const char *room = std::getenv("DCS_GRAIN_DIR");
    constexpr int first_argument = 12;
    if (count <= first_argument || std::strcmp(words[1], "run") != 0 || room == nullptr) {
        std::fprintf(stderr, "dcs_container is started by dcs_launcher: dcs run --image FILE -- CMD\n");
        return 2;
    }
    Wanted wanted{std::atoi(words[2]), words[3],  words[4], words[5], room, 0, 0, words[8], words[9],
                  words[10],           words[11], {},       {}};
    wanted.rungs = static_cast<unsigned>(std::strtoul(words[6], nullptr, 10));
    wanted.images = std::strtoull(words[7], nullptr, 10) << 20;
    wanted.argv.assign(words + first_argument, words + count);
    for (char **entry = environ; *entry != nullptr; ++entry) wanted.env.emplace_back(*entry);
    return run_outside(wanted);
}
