#pragma once
// Resources that a grain server offers without the host table's word.
#include <string>

#include "base/resources.h"

namespace dcs::server {

// `option`: "auto", "none", or offers. auto: a gpu for each device file nvidiaN in `devices`; of these only those in
// `visible`, "0,2", the value of CUDA_VISIBLE_DEVICES, if that is not null.
Result<Offers> found_resources(const std::string &option, const char *visible, const std::string &devices = "/dev");

}  // namespace dcs::server
