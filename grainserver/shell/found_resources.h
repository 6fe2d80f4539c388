#pragma once
// Resources that a grain server offers without the host table's word.
#include <string>

#include "base/resources.h"

namespace dcs::server {

// Of --resources: another server of this machine offers its devices.
inline constexpr const char *no_devices = "no-devices";
// `option`: "auto", no_devices, "none", or offers. auto: a gpu for each device file nvidiaN in `devices`; of these only
// those in `visible`, "0,2", the value of CUDA_VISIBLE_DEVICES, if that is not null; container, if `containers`.
Result<Offers> found_resources(const std::string &option, const char *visible, bool containers,
                               const std::string &devices = "/dev");
// Empty if grains can run in containers on this host; else why not. `users`: each user's grains have an account.
std::string lacks_containers(bool users);

}  // namespace dcs::server
