#pragma once
// Addresses of check=, fileserver= and gateway=: NAME, NAME:PORT, [V6], [V6]:PORT, where NAME is a host's
// name or an IPv4 address.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace dcs::shell {

struct Address {
    std::string name;        // without brackets
    std::uint16_t port = 0;  // 0: none said
    bool v6 = false;         // it is an IPv6 address
};
std::optional<Address> parse_address(std::string_view text);

}  // namespace dcs::shell
