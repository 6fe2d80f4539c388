#pragma once
// What records hold besides entities: tables, and hosts by name.
#include <functional>
#include <map>
#include <string>

#include "scheduler/state/state.h"

namespace dcs::record {

// The id of the host that a record names.
using HostIds = std::function<core::HostId(const std::string &)>;

using HandedOver = std::map<std::string, core::HandedOver>;
struct AuthTable {
    std::map<TokenHash, core::AuthEntry> tokens;
    std::map<std::string, std::int32_t> last_numbers;
    std::map<std::string, Incarnation> last_leases;
    bool operator==(const AuthTable &) const = default;
};
struct HostsTable {
    std::map<std::string, core::DurableHost> hosts;
};
struct HandedOverTable {
    HandedOver hosts;
};

}  // namespace dcs::record
