#pragma once
// What a host of the pool may be to it, as people say it; numbers as in wire::CreateToken.
#include <cstdint>
#include <string_view>

namespace dcs::commands {

inline constexpr char role_words[] = "server|client|backup";  // of --role
inline std::uint8_t number_of_role(std::string_view role) { return role == "server" ? 0 : role == "client" ? 1 : 2; }

}  // namespace dcs::commands
