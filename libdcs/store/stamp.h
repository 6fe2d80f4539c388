#pragma once
// The file turns/applied: "dcs applied <20 digits> <8 hex digits>\n", the number of the last turn
// whose effects are synced and the crc32c of what stands before it.
#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"

namespace dcs::store {

inline constexpr std::string_view format_text = "dcs backing store 1\n";

std::string encode_stamp(std::uint64_t turn);
Result<std::uint64_t> decode_stamp(std::string_view text);

}  // namespace dcs::store
