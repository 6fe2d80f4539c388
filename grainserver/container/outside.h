#pragma once
// The first process of a grain with an image: the leader of the grain's session, as the launcher sees it. It makes the
// container, passes signals on to the grain's own process, and ends as that does.
#include <cstdint>
#include <string>
#include <vector>

namespace dcs::container {

struct Wanted {
    int archive = -1;        // a descriptor of the image's
    std::string store, hex;  // of unpacked images; its digest
    std::string grains;      // the directory in which the room is
    std::string room;
    unsigned rungs = 0;
    std::uint64_t images = 0;  // bytes that the unpacked images of the store may take
    std::string gpus;          // indices of device files, "0,2"; "all", or none
    std::string brought;       // program of the host; empty: none
    std::string directory, program;
    std::vector<std::string> argv, env;
};
int run_outside(const Wanted &wanted);

}  // namespace dcs::container
