#pragma once
// The command that runs a grain in a container: dcs_container, beside this program. The launcher makes it itself: the
// grain server, which wrote the launch record, may not choose what runs without a filter of system calls.
#include <string>
#include <vector>

#include "grainserver/files/grain_record.h"
#include "grainserver/starter/image_place.h"

namespace dcs::starter {

std::string container_runner();  // path of dcs_container
// `grains`: absolute path of DIR/grains. `gpus`: whose device files it gets, "0,2", "all", or none.
std::vector<std::string> container_command(const files::LaunchRecord &launch, const std::string &grains,
                                           const ImagePlace &image, const std::string &gpus);

}  // namespace dcs::starter
