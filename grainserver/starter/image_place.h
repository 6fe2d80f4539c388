#pragma once
// Where a grain's container finds its image, and unpacks it. For grains with accounts of their own a directory of the
// account's, which no other one can enter.
#include <cstdint>
#include <string>

#include "base/status.h"
#include "grainserver/files/grain_record.h"
#include "grainserver/files/owner_rules.h"

namespace dcs::starter {

struct ImagePlace {
    std::string archive, store;                        // paths
    std::uint32_t images_mb = files::usual_images_mb;  // what all unpacked ones of the store may take
};
// `base`, `directory`: descriptor and path of DIR. `dir`: the name of the grain's directory.
Result<ImagePlace> place_image(int base, const std::string &directory, const files::LaunchRecord &launch,
                               const std::string &dir);

}  // namespace dcs::starter
