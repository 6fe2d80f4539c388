#pragma once
// What one user of the scheduler may have at a time, beside the pool's rules (core::Policy). Read from the file
// `limits`, reread with the other settings.
#include <cstddef>

#include "base/limits.h"
#include "base/load_limits.h"

namespace dcs::turn {

struct UserLimits {
    std::size_t connections = limits::connections_per_user;       // further ones are refused and closed
    std::size_t queued_requests = limits::queued_requests;        // that wait to be decided
    std::size_t queued_bytes = limits::queued_bytes;              // of their payloads
    std::size_t requests_per_turn = limits::inputs_per_turn / 2;  // grains and small requests decided in one turn
    std::size_t bytes_per_turn = limits::bytes_per_turn / 8;
    bool operator==(const UserLimits &) const = default;
};

}  // namespace dcs::turn
