#include "script.h"

#include "base/bytes.h"
#include "unit/wire/samples.h"

namespace dcs::fuzz {
namespace {

template <std::size_t... I> std::vector<wire::AnyMessage> empty_ones(std::index_sequence<I...>) {
    return {wire::AnyMessage(std::in_place_index<I>)...};
}

}  // namespace

const std::vector<wire::AnyMessage> &samples() {
    static const std::vector<wire::AnyMessage> all = [] {
        auto messages = empty_ones(std::make_index_sequence<kinds>{});
        for (const wire::AnyMessage &filled : wire::samples::all()) messages[filled.index()] = filled;
        return messages;
    }();
    return all;
}

std::vector<Item> items_of(std::string_view bytes) {
    std::vector<Item> items;
    Choices input(bytes);
    while (!input.empty() && items.size() < most_items) {
        Item next;
        next.who = input.byte();
        next.kind = static_cast<std::uint8_t>(input.byte() % kinds);
        next.payload = input.piece();
        items.push_back(std::move(next));
    }
    return items;
}

std::string bytes_of(const std::vector<Item> &items) {
    std::string bytes;
    for (const Item &i : items)
        bytes += std::string{static_cast<char>(i.who), static_cast<char>(i.kind)} + piece_of(i.payload);
    return bytes;
}

std::string payload_of(const wire::AnyMessage &message) { return wire::encode(message, 1).substr(wire::header_bytes); }

Item item(std::uint8_t who, const wire::AnyMessage &message) {
    return Item{who, static_cast<std::uint8_t>(message.index()), payload_of(message)};
}
Item action(std::uint8_t who, std::uint8_t kind) { return Item{who, kind, {}}; }

wire::FrameHeader header_of(std::uint8_t kind, std::string_view payload, std::uint64_t request) {
    wire::FrameHeader header;
    header.kind = static_cast<std::uint16_t>(kind % kinds + 1);
    header.protocol = wire::opens(header.kind) ? wire::opening_form : wire::newest_form;
    header.length = static_cast<std::uint32_t>(payload.size());
    header.crc = crc32c(payload);
    header.request = request;
    return header;
}

std::optional<wire::AnyMessage> decoded(const Item &item) {
    auto message = wire::decode_payload(header_of(item.kind, item.payload), item.payload);
    if (!message) return std::nullopt;
    return std::move(*message);
}

}  // namespace dcs::fuzz
