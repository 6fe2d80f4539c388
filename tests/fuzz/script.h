#pragma once
// A script: messages in a row, each with who says it. Its custom mutator (script.cc) knows the structure: it
// changes fields, kinds, order and speakers, from the table of messages, so that a new message is fuzzed from
// the day it exists.
//
// An input is items one after the other: u8 who, u8 kind, u16 length, that many bytes of payload. kind is the
// index in wire::AnyMessage, modulo their number; a payload that is none of the kind is skipped by decoded().
#include <optional>
#include <string>
#include <vector>

#include "fuzz.h"
#include "wire/message.h"

namespace dcs::fuzz {

inline constexpr std::size_t kinds = std::variant_size_v<wire::AnyMessageOf>;

struct Item {
    std::uint8_t who = 0, kind = 0;
    std::string payload;
};
inline constexpr std::size_t most_items = 64;
std::vector<Item> items_of(std::string_view bytes);
std::string bytes_of(const std::vector<Item> &items);

// One of every kind in the order of the table, filled where the tests of the wire have one.
const std::vector<wire::AnyMessage> &samples();

std::string payload_of(const wire::AnyMessage &message);
Item item(std::uint8_t who, const wire::AnyMessage &message);
// An item that is no message: what `who` does, and how.
Item action(std::uint8_t who, std::uint8_t kind);

// Header and all of a payload, with the right checksum.
wire::FrameHeader header_of(std::uint8_t kind, std::string_view payload, std::uint64_t request = 1);
std::optional<wire::AnyMessage> decoded(const Item &item);

}  // namespace dcs::fuzz
