#include "store/turn_root.h"

#include <algorithm>

#include "base/bytes.h"
#include "store/stamp.h"
#include "support/catch.h"

namespace dcs::store {
namespace {

std::vector<Step> some_steps() {
    static const std::string inside = "a status", beside(100, 'x');
    Step removal;
    removal.kind = StepKind::remove;
    removal.directory = "sessions/ann/1";
    Step small{StepKind::inside, "sessions/ann/2", "session", "status", Action::replace, 0,
               inside.size(),    crc32c(inside),   inside};
    Step big{StepKind::beside, "sessions/ann/2", "session", "results", Action::append, 77,
             beside.size(),    crc32c(beside),   beside};
    Step noted{StepKind::noted, "sessions/ann/2", "session", "note", Action::discard, 0, 5, 9, {}};
    return {removal, small, big, noted};
}

}  // namespace

TEST_CASE("the root of a turn comes back as it was written") {
    for (const std::size_t twice_limit : {0u, 1000u}) {
        const std::string bytes = encode_turn(12, some_steps(), RootLayout{512, twice_limit});
        const auto turn = decode_turn(bytes, 12, true);
        REQUIRE(turn);
        CHECK(turn->repaired.empty());
        const std::vector<Step> &steps = turn->steps;
        REQUIRE(steps.size() == 4);
        CHECK(steps[0].kind == StepKind::remove);
        CHECK(steps[0].directory == "sessions/ann/1");
        CHECK(steps[1].bytes == "a status");
        CHECK(steps[1].path() == "sessions/ann/2/status");
        CHECK(steps[2].kind == StepKind::beside);
        CHECK(steps[2].old_length == 77);
        CHECK(steps[2].length == 100);
        CHECK(steps[2].checksum == some_steps()[2].checksum);
        CHECK(steps[2].bytes.empty());
        CHECK(steps[2].action == Action::append);
        CHECK(steps[3].kind == StepKind::noted);
        for (const Step &step : steps) CHECK_FALSE(step.damaged);
    }
    CHECK(decode_turn(encode_turn(1, {}, {}), 1, true)->steps.empty());
}

TEST_CASE("no block holds parts of both copies, and the head keeps its length") {
    for (const std::size_t twice_limit : {0u, 1000u}) {
        const std::string root = encode_turn(12, some_steps(), RootLayout{512, twice_limit});
        const std::size_t second = root.find("DCSTURN", 1), again = root.find("a status", 300);
        CHECK(second != root.npos);
        CHECK(second >= 512);
        if (twice_limit == 0) CHECK(again == root.npos);
        else CHECK(again == 512);
    }
    // On the disk a small root is two blocks.
    CHECK(encode_turn(12, some_steps(), RootLayout()).size() < 2 * 4096);
}

TEST_CASE("a root that lost either copy comes back whole, and says so") {
    const std::string root = encode_turn(12, some_steps(), RootLayout{512, 1000});
    for (const std::size_t at : {std::size_t{0}, std::size_t{512}}) {
        std::string damaged = root;
        for (std::size_t i = at; i < std::min(at + 512, root.size()); ++i) damaged[i] = 0;
        const auto turn = decode_turn(damaged, 12, true);
        REQUIRE(turn);
        CHECK(turn->steps[1].bytes == "a status");
        CHECK_FALSE(turn->steps[1].damaged);
        CHECK(turn->repaired.empty() == (at != 0));
    }
    CHECK_FALSE(decode_turn(std::string(root.size(), '\0'), 12, true));
}

TEST_CASE("of bytes that are there once, only the node is damaged that they belong to") {
    std::vector<Step> steps = some_steps();
    static const std::string more(2000, 'm');
    steps.push_back(
        Step{StepKind::inside, "auth", "auth", "table", Action::replace, 0, more.size(), crc32c(more), more});
    const std::string root = encode_turn(12, steps, RootLayout{512, 1000});
    std::string damaged = root;
    damaged[root.find("mmmm") + 700] = 'x';
    const auto turn = decode_turn(damaged, 12, true);
    REQUIRE(turn);
    CHECK_FALSE(turn->steps[1].damaged);
    CHECK(turn->steps[4].damaged);
    CHECK(turn->repaired.empty());
    CHECK_FALSE(decode_turn(damaged, 12, false)->steps[4].damaged);  // the test build believes it
}

TEST_CASE("a root whose both heads were changed, cut away or misnamed is refused, never is a wrong one believed") {
    const std::string root = encode_turn(12, some_steps(), RootLayout{512, 0});
    CHECK_FALSE(decode_turn(root, 13, true));
    CHECK_FALSE(decode_turn("", 12, true));
    const std::size_t second = root.find("DCSTURN", 1);
    for (std::size_t i = 0; i < root.size(); ++i) {
        const auto cut = decode_turn(root.substr(0, i), 12, true);
        if (cut && (cut->steps.size() != 4 || cut->repaired.empty())) FAIL("cut at " << i);
        for (int bit = 0; bit < 8; ++bit) {
            std::string damaged = root;
            damaged[i] = static_cast<char>(damaged[i] ^ (1 << bit));
            const auto turn = decode_turn(damaged, 12, true);
            if (!turn) FAIL("one bit, at " << i << ", bit " << bit);
            if (turn->steps[1].bytes != "a status" && !turn->steps[1].damaged) FAIL("believed, at " << i);
            if (i + second >= root.size()) continue;
            damaged[second + i] = static_cast<char>(damaged[second + i] ^ (1 << bit));
            if (decode_turn(damaged, 12, true)) FAIL("both heads, at " << i << ", bit " << bit);
        }
    }
}

TEST_CASE("a root whose sums are right but whose content is not is refused") {
    const auto with = [](auto change) {
        std::vector<Step> steps = some_steps();
        change(steps);
        return decode_turn(encode_turn(12, steps, RootLayout{512, 1000}), 12, true);
    };
    CHECK(with([](auto &) {}));
    CHECK_FALSE(with([](auto &s) { s[0].directory = "../etc"; }));
    CHECK_FALSE(with([](auto &s) { s[0].directory = "turns"; }));
    CHECK_FALSE(with([](auto &s) { s[1].directory = "/tmp"; }));
    CHECK_FALSE(with([](auto &s) { s[1].file = "a/b"; }));
    CHECK_FALSE(with([](auto &s) { s[1].file = "x.new"; }));
    CHECK_FALSE(with([](auto &s) { s[1].file = "DAMAGED"; }));
    CHECK_FALSE(with([](auto &s) { s[1].kind = static_cast<StepKind>(9); }));
    CHECK_FALSE(with([](auto &s) { s[1].action = Action::information; }));
    CHECK(with([](auto &s) { s[1].length = 3; })->steps[1].damaged);
    CHECK(with([](auto &s) { s[1].length = ~0ull; })->steps[1].damaged);
    CHECK(with([](auto &s) { s[1].checksum ^= 1; })->steps[1].damaged);
}

TEST_CASE("a root of another version is named as that") {
    std::string root = encode_turn(12, {}, RootLayout{64, 0});
    for (const std::size_t at : {std::size_t{0}, std::size_t{64}}) {
        root[at + 8] = 3;
        const std::uint32_t sum = crc32c(std::string_view(root).substr(at, 41));
        for (int i = 0; i < 4; ++i) root[at + 41 + static_cast<std::size_t>(i)] = static_cast<char>(sum >> (8 * i));
    }
    const auto turn = decode_turn(root, 12, true);
    REQUIRE_FALSE(turn);
    CHECK(turn.status().code == Code::invalid);
}

TEST_CASE("the stamp") {
    constexpr std::size_t block = 64;
    CHECK(encode_stamp(7, block).size() == 42 + 64);
    for (const std::uint64_t turn : {0ull, 7ull, 18446744073709551615ull}) {
        const auto back = decode_stamp(encode_stamp(turn, block), true);
        REQUIRE(back);
        CHECK(back->turn == turn);
        CHECK(back->damage.empty());
    }
    const std::string stamp = encode_stamp(1234, block);
    for (std::size_t i = 0; i < 42; ++i) {
        CHECK_FALSE(decode_stamp(stamp.substr(0, i), true));
        std::string damaged = stamp;
        damaged[i] = static_cast<char>(damaged[i] ^ 1);
        REQUIRE(decode_stamp(damaged, true));
        CHECK(decode_stamp(damaged, true)->turn == 1234);
        CHECK_FALSE(decode_stamp(damaged, true)->damage.empty());
        damaged[block + i] = static_cast<char>(damaged[block + i] ^ 1);
        CHECK_FALSE(decode_stamp(damaged, true));
        damaged[i] = stamp[i];
        CHECK(decode_stamp(damaged, true)->turn == 1234);
        CHECK_FALSE(decode_stamp(damaged, true)->damage.empty());
    }
}

TEST_CASE("of two good stamps the higher is the later write") {
    const std::string older = encode_stamp(1233, 64), newer = encode_stamp(1234, 64);
    for (const std::string &file : {older.substr(0, 64) + newer.substr(64), newer.substr(0, 64) + older.substr(64)}) {
        const auto stamp = decode_stamp(file, true);
        REQUIRE(stamp);
        CHECK(stamp->turn == 1234);
        CHECK(stamp->damage == "its copies differ");
    }
}

TEST_CASE("the format") {
    const std::string file = encode_format(64);
    CHECK(decode_format(file) == Format::good);
    CHECK(file.substr(0, file.find('\n')) == "dcs backing store 3");
    for (std::size_t i = 0; i < 20; ++i)
        for (int bit = 0; bit < 8; ++bit) {
            std::string damaged = file;
            damaged[i] = static_cast<char>(damaged[i] ^ (1 << bit));
            if (decode_format(damaged) != Format::one_copy) FAIL("first copy, " << i);
            damaged[64 + i] = static_cast<char>(damaged[64 + i] ^ 0xFF);
            const Format both = decode_format(damaged);
            if (both == Format::good || both == Format::one_copy) FAIL("both copies, " << i);
            damaged = file;
            damaged[64 + i] = static_cast<char>(damaged[64 + i] ^ (1 << bit));
            if (decode_format(damaged) != Format::one_copy) FAIL("second copy, " << i);
        }
    CHECK(decode_format("dcs backing store 3\n") == Format::one_copy);
    CHECK(decode_format("dcs backing store 1\n") == Format::foreign);
    CHECK(decode_format("dcs backing store 30\nand more\n") == Format::foreign);
    CHECK(format_line("dcs backing store 30\nand more\n") == "dcs backing store 30");
    for (const char *bad : {"", "\n", "dcs backing store \n", "dcs backing store 1", "dcs backing store x\n"})
        CHECK(decode_format(bad) == Format::damaged);
}

}  // namespace dcs::store
