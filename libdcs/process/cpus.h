#pragma once
// The CPUs that this process may use, as a resource.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/resources.h"

namespace dcs {

// Empty if it may use all of them: "grains cannot use CPU 7 on this host, only 0,1".
std::string lacks_cpus(const std::vector<std::int32_t> &cpus);
// As offers_of(), of this host: Code::invalid also for CPUs that it lacks.
Result<Offers> offers_of_this_host(std::string_view offer);

}  // namespace dcs
