#pragma once
// Names of masks of host classes, as the host table declares them: `class gpu=0x4`.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace dcs {

struct HostClass {
    std::string name;
    std::uint32_t mask = 0;
    bool operator==(const HostClass &) const = default;
};
using HostClasses = std::vector<HostClass>;

// Names and masks with commas, "gpu,0x8". Code::not_found: a name that is not declared; invalid: neither.
Result<std::uint32_t> mask_of(std::string_view words, const HostClasses &known);
// The other way: a class that is the whole mask, otherwise those within it, with bits that have no name as a number;
// empty if no name applies.
std::string class_names(std::uint32_t mask, const HostClasses &known);

}  // namespace dcs
