#pragma once
#include <cstdint>
#include <string_view>

#include "base/ids.h"

namespace dcs {
// CRC-32C (Castagnoli): against rot and torn writes, not against malice.
std::uint32_t crc32c(std::string_view bytes);
}  // namespace dcs
