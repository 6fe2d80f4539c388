#pragma once
// Codes and hashes as people copy them: hexadecimal.
#include <optional>
#include <string>
#include <string_view>

namespace dcs {

std::string hex_of(std::string_view bytes);
// Exactly `size` bytes, else nothing.
std::optional<std::string> bytes_of_hex(std::string_view text, std::size_t size);

}  // namespace dcs
