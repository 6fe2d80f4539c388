#include "scheduler/shell/address.h"

#include <arpa/inet.h>

#include "scheduler/shell/settings_text.h"

namespace dcs::shell {
namespace {

constexpr std::size_t max_host_name = 253;  // of the DNS

bool is_v6(const std::string &text) {
    const std::size_t zone = text.find('%');
    in6_addr ignored{};
    return ::inet_pton(AF_INET6, text.substr(0, zone).c_str(), &ignored) == 1 &&
           (zone == std::string::npos || is_name(std::string_view(text).substr(zone + 1)));
}

}  // namespace

std::optional<Address> parse_address(std::string_view text) {
    Address address;
    std::size_t colon = text.find(':');
    if (!text.empty() && text[0] == '[') {
        const std::size_t end = text.find(']');
        if (end == std::string_view::npos) return {};
        address.name = std::string(text.substr(1, end - 1));
        address.v6 = true;
        if (!is_v6(address.name)) return {};
        colon = end + 1 < text.size() ? end + 1 : std::string_view::npos;
        if (colon != std::string_view::npos && text[colon] != ':') return {};
    } else {
        address.name = std::string(text.substr(0, colon));
        if (!is_name(address.name, max_host_name)) return {};
    }
    if (colon == std::string_view::npos) return address;
    if (!read_number(text.substr(colon + 1), address.port) || address.port == 0) return {};
    return address;
}

}  // namespace dcs::shell
