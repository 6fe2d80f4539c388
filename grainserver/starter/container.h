#pragma once
// The command that runs a grain in a container: dcs_container, beside this program. The launcher makes it itself: the
// grain server, which wrote the launch record, may not choose what runs without a filter of system calls.
#include <cstdint>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/status.h"
#include "grainserver/files/grain_record.h"
#include "grainserver/files/owner_rules.h"

namespace dcs::starter {

// Where it finds its image, and unpacks it. For grains with accounts of their own a directory of the account's, which
// no other one can enter.
struct ImagePlace {
    Fd archive;                                        // the child inherits it
    std::string store;                                 // a path
    std::uint32_t images_mb = files::usual_images_mb;  // what all unpacked ones of the store may take
};
// `base`, `directory`: descriptor and path of DIR.
Result<ImagePlace> place_image(int base, const std::string &directory, const files::LaunchRecord &launch);

std::string container_runner();  // path of dcs_container
// `grains`: absolute path of DIR/grains. `gpus`: whose device files it gets, "0,2", "all", or none.
std::vector<std::string> container_command(const files::LaunchRecord &launch, const std::string &grains,
                                           const ImagePlace &image, const std::string &gpus);

}  // namespace dcs::starter
