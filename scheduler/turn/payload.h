#pragma once
#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "base/checksum.h"
#include "scheduler/core/input.h"

namespace dcs::turn {

inline core::Payload payload_of(std::string bytes) {
    return core::Payload{std::make_shared<const std::string>(std::move(bytes))};
}

// Digest of the program that the spec names, which may be relative to the user's home; not 0.
inline std::uint32_t program_of(const std::string &user, const wire::GrainSpec &spec) {
    return spec.argv.empty() ? 0 : std::max<std::uint32_t>(1, crc32c(spec.argv[0], crc32c(user)));
}

}  // namespace dcs::turn
