#pragma once
// What a host of the pool may be to it, as people say it; numbers as in wire::CreateToken.
#include <cstdint>
#include <optional>
#include <string_view>

namespace dcs::commands {

inline std::optional<std::uint8_t> number_of_role(std::string_view role) {
    constexpr std::string_view words[] = {"server", "client", "backup"};
    for (std::uint8_t i = 0; i < 3; ++i)
        if (role == words[i]) return i;
    return std::nullopt;
}

}  // namespace dcs::commands
