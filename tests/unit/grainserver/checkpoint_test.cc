// The checkpoint file of docs/GRAIN_PROTOCOL.md, byte by byte.
#include <fstream>
#include <iterator>

#include "grainserver/core/checkpoint_file.h"
#include "places.h"
#include "support/catch.h"

using namespace dcs;
using namespace dcs::server;

namespace {
// The example of the page itself.
std::string example() {
    std::ifstream in(DCS_SOURCE_DIR "/docs/GRAIN_PROTOCOL.md");
    const std::string page((std::istreambuf_iterator<char>(in)), {});
    const std::string fence = "```checkpoint\n";
    const std::size_t start = page.find(fence + "dcs-checkpoint 1\n");
    REQUIRE(start != std::string::npos);
    const std::size_t from = start + fence.size(), end = page.find("\n```", from);
    REQUIRE(end != std::string::npos);
    return page.substr(from, end + 1 - from);
}
std::string made(const std::string &state, const std::string &message, std::uint64_t offset) {
    char trailer[64];
    std::snprintf(trailer, sizeof trailer, "dcs-end %zu %08X\n", state.size(), crc32_ieee(state));
    return "dcs-checkpoint 1\ninput_offset " + std::to_string(offset) + "\nusage_us 1 2\nmessage " +
           std::to_string(message.size()) + "\n\n" + message + "\n" + state + trailer;
}
}  // namespace

TEST_CASE("the CRC-32 is zlib's") {
    REQUIRE(crc32_ieee("123456789") == 0xCBF43926u);
    REQUIRE(crc32_ieee("hello") == 0x3610A686u);
    REQUIRE(crc32_ieee("") == 0u);
}

TEST_CASE("the example of the page is read as the page says") {
    const std::string text = example();
    const Result<Checkpoint> c = parse_checkpoint(text, 1234);
    INFO(c.status().text);
    REQUIRE(c);
    REQUIRE(c->input_offset == 1234);
    REQUIRE(c->user_us == 81000);
    REQUIRE(c->system_us == 2000);
    REQUIRE(c->message == "half way through.");
    REQUIRE(c->state == "hello");
}

TEST_CASE("input_offset may be the end of the input, not more") {
    REQUIRE(parse_checkpoint(example(), 1234));
    REQUIRE_FALSE(parse_checkpoint(example(), 1233));
}

TEST_CASE("every truncation of the example is refused") {
    const std::string text = example();
    for (std::size_t n = 0; n < text.size(); ++n) {
        INFO(n);
        REQUIRE_FALSE(parse_checkpoint(text.substr(0, n), 1234));
    }
    CHECK(parse_checkpoint(text.substr(0, text.size() - 1), 1234).status().text.find("newline") != std::string::npos);
    REQUIRE_FALSE(parse_checkpoint(text + "\n", 1234));
    REQUIRE_FALSE(parse_checkpoint(text + text, 1234));
}

TEST_CASE("a flipped bit is refused, or lies where it changes no state") {
    const std::string text = example();
    const std::size_t state_at = text.find("hello");
    for (std::size_t i = 0; i < text.size(); ++i)
        for (int bit = 0; bit < 8; ++bit) {
            std::string bad = text;
            bad[i] = static_cast<char>(bad[i] ^ (1 << bit));
            const Result<Checkpoint> c = parse_checkpoint(bad, 1u << 30);
            INFO("byte " << i << " bit " << bit);
            if (i >= state_at) REQUIRE_FALSE(c);  // state and trailer
            else if (c) REQUIRE(c->state == "hello");
        }
}

TEST_CASE("state text of any bytes") {
    std::string all;
    for (int i = 0; i < 256; ++i) all += static_cast<char>(i);
    for (const std::string &state :
         {std::string(), std::string("\n"), std::string("x\n"), all, std::string("dcs-end 3 3610A686\n"),
          std::string("no newline"), std::string(100'000, 'a')}) {
        const std::string text = made(state, "a message\nof two lines", 3);
        const Result<Checkpoint> c = parse_checkpoint(text, 3);
        REQUIRE(c);
        REQUIRE(c->state == state);
        REQUIRE(c->message == "a message\nof two lines");
    }
}

TEST_CASE("headers: unknown names are skipped, required ones must be there once and be numbers") {
    const std::string tail = "\nhello\nhellodcs-end 5 3610A686\n";
    const auto ok = [&](const std::string &lines) {
        return static_cast<bool>(parse_checkpoint("dcs-checkpoint 1\n" + lines + tail, 10));
    };
    REQUIRE(ok("input_offset 1\nusage_us 1 2\nmessage 5\n"));
    REQUIRE(ok("colour blue\nmessage 5\nusage_us 1 2\ninput_offset 1\n"));
    REQUIRE_FALSE(ok("usage_us 1 2\nmessage 5\n"));
    REQUIRE_FALSE(ok("input_offset 1\nmessage 5\n"));
    REQUIRE_FALSE(ok("input_offset 1\nusage_us 1 2\n"));
    REQUIRE_FALSE(ok("input_offset 1\ninput_offset 1\nusage_us 1 2\nmessage 5\n"));
    REQUIRE_FALSE(ok("input_offset -1\nusage_us 1 2\nmessage 5\n"));
    REQUIRE_FALSE(ok("input_offset 99999999999999999999999\nusage_us 1 2\nmessage 5\n"));
    REQUIRE_FALSE(ok("input_offset 1\nusage_us -1 2\nmessage 5\n"));
    REQUIRE_FALSE(ok("input_offset 1\nusage_us 1\nmessage 5\n"));
    REQUIRE_FALSE(ok("input_offset 1\nusage_us 1 2\nmessage 18446744073709551615\n"));
    REQUIRE_FALSE(ok("input_offset 1\nusage_us 1 2\nmessage 4\n"));
}

TEST_CASE("a lower-case checksum is not of the form") {
    std::string text = example();
    text.replace(text.find("3610A686"), 8, "3610a686");
    REQUIRE_FALSE(parse_checkpoint(text, 1234));
}

TEST_CASE("positions are told by the original input") {
    // first run: no checkpoint text
    REQUIRE(normalise(5, 0, 0).input_position == 5);
    REQUIRE(normalise(5, 0, 0).carry_from == 0);
    // a run that was started with 10 bytes of checkpoint text and the rest from 100 on
    REQUIRE(normalise(10, 10, 100).input_position == 100);
    REQUIRE(normalise(10, 10, 100).carry_from == 10);
    REQUIRE(normalise(17, 10, 100).input_position == 107);
    // taken before the old text was used up: the rest of it goes along
    REQUIRE(normalise(4, 10, 100).input_position == 100);
    REQUIRE(normalise(4, 10, 100).carry_from == 4);
}

TEST_CASE("over any number of moves a grain reads each byte of its input exactly once") {
    // A model grain: its state is what it has read; checkpoints at arbitrary places.
    const std::string original = "abcdefghijklmnopqrstuvwxyz";
    std::uint32_t seed = 12345;
    const auto random = [&](std::size_t below) { return (seed = seed * 1103515245u + 12345u) / 65536 % below; };
    for (int round = 0; round < 500; ++round) {
        std::string carried;  // unread text in front of the rest of the original
        std::size_t base = 0;
        std::string consumed;
        for (int move = 0; move < 6; ++move) {
            const std::string input = carried + original.substr(base);
            const std::size_t offset = random(input.size() + 1);
            consumed += input.substr(0, offset);
            const Normalised n = normalise(offset, carried.size(), base);
            REQUIRE(n.input_position >= base);
            // this model keeps nothing in its own state text, so only the carried text is left
            carried = carried.substr(n.carry_from);
            base = n.input_position;
            // a new state text of random length may come first: it is read again first, and is not original
        }
        consumed += carried + original.substr(base);
        REQUIRE(consumed == original);
    }
}
