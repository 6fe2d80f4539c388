#pragma once
#include <cstdint>
#include <string>

namespace dcs::daemon {
// Login name of a uid, "uid1234" if the system has none for it. Kept for the process's life: a
// connection's name must not change while it is open. One thread.
const std::string &peer_name(std::uint32_t uid);
}  // namespace dcs::daemon
