// The parts of `dcs top` that need no terminal.
#include <catch2/catch.hpp>

#include "commands/dcs/frame/table.h"
#include "commands/dcs/top/screens.h"
#include "commands/dcs/top/terminal.h"

namespace {

using namespace dcs;
using namespace dcs::commands;
using top::Key;

std::vector<Key> keys_of(std::string_view typed) {
    std::vector<Key> keys;
    while (!typed.empty()) keys.push_back(top::take_key(typed));
    return keys;
}

page::Run a_run(int session, const std::string &host, std::int64_t from_s, std::int64_t to_s, const char *reason) {
    page::Run run;
    run.session = {"ann", session};
    run.grain = 1;
    run.host = host;
    run.from_ms = from_s * 1000;
    run.to_ms = to_s < 0 ? -1 : to_s * 1000;
    run.reason = reason;
    return run;
}

std::string joined_lines(const top::Lines &lines) {
    std::string text;
    for (const std::string &line : lines) text += line + "\n";
    return text;
}

}  // namespace

TEST_CASE("a line is cut by columns, not by bytes, and its colours end with it") {
    CHECK(top::cut("abcdef", 3) == "abc");
    CHECK(top::cut("äöüß", 3) == "äöü");
    CHECK(top::cut("ab", 3) == "ab");
    CHECK(top::cut("\033[31mabc\033[0mdef", 2) == "\033[31mab\033[0m");
    CHECK(top::cut("\033[31mabc\033[0mdef", 4) == "\033[31mabc\033[0md");
    CHECK(top::cut("\033[31mabc\033[0m", 3) == "\033[31mabc\033[0m");
    CHECK(top::cut("", 3).empty());
}

TEST_CASE("keys and their sequences are told apart") {
    CHECK(keys_of("1") == std::vector{Key::first});
    CHECK(keys_of("\033[A\033OBj4") == std::vector{Key::up, Key::down, Key::down, Key::fourth});
    CHECK(keys_of("\033[5~\033[6~\tq") == std::vector{Key::page_up, Key::page_down, Key::next, Key::leave});
    // Keys that mean nothing do not become others by their last letters.
    CHECK(keys_of("\033[1;5q") == std::vector{Key::none});
    CHECK(keys_of("\033[15~\033OQ\033z") == std::vector{Key::none, Key::none, Key::none, Key::none});
    CHECK(keys_of("\033[") == std::vector{Key::none});
    CHECK(keys_of("\033[38;5") == std::vector{Key::none});
}

TEST_CASE("the screen of a thousand hosts has a sign for each, and those to look at first") {
    set_colour("never");
    top::Look look;
    look.pool.at_ms = 1;
    look.pool.reachable = true;
    for (int i = 0; i < 1000; ++i) {
        wire::HostRow row;
        row.name = "host" + std::to_string(i);
        row.state = i == 700 ? "dead" : i == 701 ? "delinquent" : "active";
        row.slots = 4;
        row.running = i % 5;
        row.note = i == 702 ? "\033[2Jwipes the screen" : "";
        look.pool.hosts.push_back(row);
    }
    const top::Lines lines = top::screen_lines(look, 0, 80);
    std::string signs;
    for (std::size_t i = 1; i <= 13; ++i) signs += lines[i];
    CHECK(signs.size() == 1000);
    CHECK(signs.substr(699, 4) == "#Xl+");
    CHECK(lines[16].substr(0, 13) == "host700  dead");
    CHECK(lines[17].substr(0, 7) == "host701");
    CHECK(lines[18].find("?[2Jwipes") != std::string::npos);
    CHECK(joined_lines(lines).find('\033') == std::string::npos);
    for (const std::size_t columns : {20u, 80u, 300u}) CHECK_FALSE(top::screen_lines(look, 0, columns).empty());
    set_colour("automatic");
}

TEST_CASE("the dataflow has each decision with the grains that it submitted, many alike as one") {
    set_colour("never");
    top::Look look;
    look.pool.at_ms = 1;
    CHECK(top::screen_lines(look, top::flow_screen, 80).size() == 1);
    auto shown = std::make_shared<top::FlowLook>();
    shown->session = "7";
    shown->flow.decisions = {{0}, {2}, {3}};
    shown->flow.end = 2;
    Flow::Grains many, one;
    many.numbers = {1, 2};
    many.to = 1;
    many.state = wire::GrainState::finished;
    one.numbers = {3};
    one.from = 1;
    one.to = 2;
    one.state = wire::GrainState::finished;
    one.failed = true;
    shown->flow.grains = {many, one};
    look.flow = shown;
    CHECK(joined_lines(top::screen_lines(look, top::flow_screen, 80)) ==
          "Session 7: what followed from which results\nbegin\n    grains 1-2: finished -> decision at 2 results\n"
          "decision at 2 results\n    grain 3: failed -> end\nend at 3 results\n");
    set_colour("automatic");
}

TEST_CASE("the time line has a line for each slot, with starts, checkpoints, and what is done again") {
    set_colour("never");
    const std::int64_t now_s = 10'000;
    page::Placed left{a_run(7, "h1", now_s - 60, now_s - 30, "host_dead"), (now_s - 60) * 1000, (now_s - 30) * 1000, 0};
    left.run.checkpoints_ms = {(now_s - 45) * 1000};
    const page::Placed runs{a_run(12, "h1", now_s - 40, -1, ""), (now_s - 40) * 1000, now_s * 1000, 1};
    top::Look look;
    look.pool.at_ms = 1;
    look.lanes = {(now_s - 60) * 1000, now_s * 1000, {{"h1", 2, {left, runs}}}};
    look.moves = {{(now_s - 30) * 1000, {"ann", 7}, 1, "h1", "host_dead", ""},  // a log after the other
                  {(now_s - 50) * 1000, {"ann", 12}, 1, "h1", "host_dead", ""}};
    const top::Lines lines = top::screen_lines(look, 2, 13 + 61);
    CHECK(lines[0].substr(lines[0].size() - 4) == "now|");
    CHECK(lines[1] ==
          "h1           [" + std::string(14, '7') + "^" + std::string(14, '~') + "x" + std::string(30, ' '));
    CHECK(lines[2] == std::string(13 + 20, ' ') + "[" + std::string(40, '2'));
    const std::size_t latest = joined_lines(lines).find("ann/7:1 left h1: host_dead");
    CHECK(latest < joined_lines(lines).find("ann/12:1 left h1: host_dead"));
    CHECK(latest != std::string::npos);
    for (const std::size_t columns : {1u, 20u, 400u}) CHECK_FALSE(top::screen_lines(look, 2, columns).empty());
    set_colour("automatic");
}
