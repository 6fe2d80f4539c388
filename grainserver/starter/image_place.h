#pragma once
// Where a grain's container finds its image, and unpacks it. For grains with accounts of their own a directory of the
// account's, which no other one can enter.
#include <string>

#include "base/status.h"
#include "grainserver/files/grain_record.h"

namespace dcs::starter {

struct ImagePlace {
    std::string archive, store;  // paths
};
// `base`, `directory`: descriptor and path of DIR. `dir`: the name of the grain's directory.
Result<ImagePlace> place_image(int base, const std::string &directory, const files::LaunchRecord &launch,
                               const std::string &dir);

}  // namespace dcs::starter
