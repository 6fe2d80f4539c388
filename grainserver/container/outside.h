#pragma once
// The first process of a grain with an image: the leader of the grain's session, as the launcher sees it. It makes the
// container, passes signals on to the grain's own process, and ends as that does.
#include <string>
#include <vector>

namespace dcs::container {

struct Wanted {
    std::string archive, store, hex;  // the image
    std::string grains;               // the directory in which the room is
    std::string room;
    unsigned rungs = 0;
    std::string gpus;     // indices of device files, "0,2"; "all", or none
    std::string brought;  // program of the host; empty: none
    std::string directory, program;
    std::vector<std::string> argv, env;
};
int run_outside(const Wanted &wanted);

}  // namespace dcs::container
