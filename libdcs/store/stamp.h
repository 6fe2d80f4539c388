#pragma once
// The two small texts that the store requires. Each file contains its text twice, at the beginning
// and at the end, in different blocks:
//   turns/applied   "dcs applied <20 digits> <8 hex digits>\n": the number of the last turn whose
//                   effects are synced, and the crc32c of the preceding bytes
//   format          "dcs backing store 3\n"
// They are written whole and renamed into place after a sync, so no crash leaves copies that
// differ: a difference is damage.
#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"

namespace dcs::store {

inline constexpr std::string_view format_text = "dcs backing store 3\n";
// Of release 0.1, which has no journal of turns: read, and rewritten so that it refuses what it cannot read.
inline constexpr std::string_view older_format_text = "dcs backing store 2\n";

std::string encode_stamp(std::uint64_t turn, std::size_t block);
std::string encode_format(std::size_t block);

struct Stamp {
    std::uint64_t turn = 0;
    std::string damage;  // of one copy, while the other is valid; empty: none
};
// `check_sums` is false only in the test build.
Result<Stamp> decode_stamp(std::string_view file, bool check_sums);

enum class Format {
    good,  // both copies
    one_copy,
    older,    // at least one copy of the older one
    foreign,  // no valid copy, but a well-formed line with another number
    damaged
};
Format decode_format(std::string_view file);
// The line "dcs backing store <number>" of a foreign store.
std::string format_line(std::string_view file);

}  // namespace dcs::store
