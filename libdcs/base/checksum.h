#pragma once
#include <cstdint>
#include <string_view>

#include "base/ids.h"

namespace dcs {
// CRC-32C (Castagnoli): against rot and torn writes, not against malice. `before` is the sum of
// the sum of the bytes in front of these: crc32c(b, crc32c(a)) is the sum of a and b joined.
std::uint32_t crc32c(std::string_view bytes, std::uint32_t before = 0);
}  // namespace dcs
