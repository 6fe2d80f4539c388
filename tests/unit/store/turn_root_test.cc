#include "store/turn_root.h"

#include "base/bytes.h"
#include "base/checksum.h"
#include "store/stamp.h"
#include "support/catch.h"

namespace dcs::store {
namespace {

std::vector<Step> some_steps() {
    static const std::string inside = "a status", beside(100, 'x');
    Step removal;
    removal.kind = StepKind::remove;
    removal.directory = "sessions/ann/1";
    Step small{StepKind::inside, "sessions/ann/2", "session", "status", Action::replace,
               0, inside.size(), crc32c(inside), inside};
    Step big{StepKind::beside, "sessions/ann/2", "session", "results", Action::append,
             77, beside.size(), crc32c(beside), beside};
    Step noted{StepKind::noted, "sessions/ann/2", "session", "note", Action::discard, 0, 5, 9, {}};
    return {removal, small, big, noted};
}

}  // namespace

TEST_CASE("the root of a turn comes back as it was written") {
    const std::string bytes = encode_turn(12, some_steps());
    const auto steps = decode_turn(bytes, 12, true);
    REQUIRE(steps);
    REQUIRE(steps->size() == 4);
    CHECK((*steps)[0].kind == StepKind::remove);
    CHECK((*steps)[0].directory == "sessions/ann/1");
    CHECK((*steps)[1].bytes == "a status");
    CHECK((*steps)[1].path() == "sessions/ann/2/status");
    CHECK((*steps)[2].kind == StepKind::beside);
    CHECK((*steps)[2].old_length == 77);
    CHECK((*steps)[2].length == 100);
    CHECK((*steps)[2].checksum == some_steps()[2].checksum);
    CHECK((*steps)[2].bytes.empty());
    CHECK((*steps)[2].action == Action::append);
    CHECK((*steps)[3].kind == StepKind::noted);
    CHECK(decode_turn(encode_turn(1, {}), 1, true)->empty());
}

TEST_CASE("a root that was changed anywhere, cut, extended or misnamed is refused") {
    const std::string bytes = encode_turn(12, some_steps());
    CHECK_FALSE(decode_turn(bytes, 13, true));
    CHECK_FALSE(decode_turn(bytes + '\0', 12, true));
    CHECK_FALSE(decode_turn("", 12, true));
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        CHECK_FALSE(decode_turn(bytes.substr(0, i), 12, true));
        for (int bit = 0; bit < 8; ++bit) {
            std::string damaged = bytes;
            damaged[i] = static_cast<char>(damaged[i] ^ (1 << bit));
            if (decode_turn(damaged, 12, true)) FAIL("byte " << i << " bit " << bit);
        }
    }
}

TEST_CASE("a root whose sums are right but whose content is not is refused") {
    const auto with = [](auto change) {
        std::vector<Step> steps = some_steps();
        change(steps);
        return bool(decode_turn(encode_turn(12, steps), 12, true));
    };
    CHECK(with([](auto &) {}));
    CHECK_FALSE(with([](auto &s) { s[0].directory = "../etc"; }));
    CHECK_FALSE(with([](auto &s) { s[0].directory = "turns"; }));
    CHECK_FALSE(with([](auto &s) { s[1].directory = "/tmp"; }));
    CHECK_FALSE(with([](auto &s) { s[1].file = "a/b"; }));
    CHECK_FALSE(with([](auto &s) { s[1].file = "x.new"; }));
    CHECK_FALSE(with([](auto &s) { s[1].length = 3; }));
    CHECK_FALSE(with([](auto &s) { s[1].checksum ^= 1; }));
    CHECK_FALSE(with([](auto &s) { s[1].kind = static_cast<StepKind>(9); }));
    CHECK_FALSE(with([](auto &s) { s[1].action = Action::information; }));
}

TEST_CASE("the stamp") {
    CHECK(encode_stamp(7).size() == 42);
    for (const std::uint64_t turn : {0ull, 7ull, 18446744073709551615ull}) {
        const auto back = decode_stamp(encode_stamp(turn));
        REQUIRE(back);
        CHECK(*back == turn);
    }
    const std::string stamp = encode_stamp(1234);
    for (std::size_t i = 0; i < stamp.size(); ++i) {
        CHECK_FALSE(decode_stamp(stamp.substr(0, i)));
        std::string damaged = stamp;
        damaged[i] = static_cast<char>(damaged[i] ^ 1);
        CHECK_FALSE(decode_stamp(damaged));
    }
}

}  // namespace dcs::store
