#pragma once
// The checkpoint file of docs/GRAIN_PROTOCOL.md. A grain wrote the bytes, so nothing is used before all of
// it is verified.
#include <cstdint>
#include <string_view>

#include "base/status.h"

namespace dcs::server {

struct Checkpoint {
    std::uint64_t input_offset = 0;  // in the run's standard input
    std::int64_t user_us = 0, system_us = 0;
    std::string_view message, state;  // point into the parsed bytes
};

// CRC-32 of IEEE 802.3, as in zlib.
std::uint32_t crc32_ieee(std::string_view bytes);

// Code::invalid with the reason if header, lengths or checksum do not match, or if input_offset is
// greater than `input_size`.
Result<Checkpoint> parse_checkpoint(std::string_view bytes, std::uint64_t input_size);

// The data for a restart, relative to the ORIGINAL input. This run read `checkpoint_length` bytes of older
// checkpoint text and then the original input from `input_base` on. If the new checkpoint was
// taken before the older text was consumed, the caller appends bytes [carry_from, checkpoint_length)
// of the run's input to the new state text (none if carry_from == checkpoint_length).
struct Normalised {
    std::uint64_t input_position = 0;
    std::uint64_t carry_from = 0;
};
Normalised normalise(std::uint64_t input_offset, std::uint64_t checkpoint_length, std::uint64_t input_base);

}  // namespace dcs::server
