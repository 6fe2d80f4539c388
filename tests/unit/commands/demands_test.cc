#include "commands/dcs/demands.h"

#include <algorithm>
#include <cstring>

#include "commands/dcs/call.h"
#include "support/catch.h"

using namespace dcs;
using namespace dcs::commands;

namespace {

struct Taken {
    Demands demands;
    std::optional<Failure> failure;
};

Taken take(const std::vector<std::string> &line) {
    Arguments arguments;
    const Status parsed = parse_arguments(line, with_demands({}), true, arguments);
    INFO(parsed.text);
    REQUIRE(parsed);
    Taken taken;
    taken.failure = take_demands(arguments, taken.demands);
    return taken;
}

}  // namespace

TEST_CASE("demands: nothing said is one attempt anywhere") {
    const Taken taken = take({"cmd"});
    REQUIRE_FALSE(taken.failure);
    d_grain grain;
    d_grain_init(&grain);
    taken.demands.put_into(grain);
    CHECK(grain.attempts == 1);
    CHECK(grain.host_class == 0);
    CHECK((grain.cores == 0 && grain.memory_mb == 0 && grain.wall_s == 0));
    CHECK((grain.thrash == 0 && grain.notice == 0 && grain.urgent == 0));
}

TEST_CASE("demands: each option reaches its own field of the grain") {
    const Taken taken = take({"--class", "0x6", "--attempts", "4", "--cores", "2", "--memory=512", "--wall", "1.5m",
                              "--thrash", "64", "--notice", "3", "--urgent", "cmd", "--cores"});
    REQUIRE_FALSE(taken.failure);
    d_grain grain;
    d_grain_init(&grain);
    taken.demands.put_into(grain);
    CHECK(grain.host_class == 6);
    CHECK(grain.attempts == 4);
    CHECK(grain.cores == 2);
    CHECK(grain.memory_mb == 512);
    CHECK(grain.wall_s == 90);
    CHECK(grain.thrash == 64);
    CHECK(grain.notice == 3);
    CHECK(grain.urgent == 1);
    CHECK(take({"--wall", "0.2"}).demands.wall_s == 1);  // 0 would be no limit
}

TEST_CASE("demands: what makes no sense is a usage error that names option and value") {
    const std::vector<std::vector<std::string>> wrong = {
        {"--class", "x"},  {"--attempts", "0"}, {"--attempts", "256"}, {"--cores", "0"},  {"--cores", "65537"},
        {"--memory", "0"}, {"--memory", "1G"},  {"--wall", "0"},       {"--wall", "-1"},  {"--wall", "soon"},
        {"--thrash", "-1"}, {"--notice", "-1"},  {"--notice", "1h"}};
    for (const auto &line : wrong) {
        CAPTURE(line[0], line[1]);
        const Taken taken = take(line);
        REQUIRE(taken.failure);
        CHECK(taken.failure->exit == exits::usage);
        CHECK(taken.failure->message.rfind(line[0] + " " + line[1] + ": ", 0) == 0);
    }
}

TEST_CASE("dcs run and dcs map know every demand, and their help says so") {
    for (const Verb *verb : {&run_verb, &map_verb})
        for (const Option &option : with_demands({})) {
            CAPTURE(verb->name, option.name);
            const auto same = [&](const Option &o) {
                return std::strcmp(o.name, option.name) == 0 && o.takes_value == option.takes_value;
            };
            CHECK(std::count_if(verb->options.begin(), verb->options.end(), same) == 1);
            CHECK(std::string(verb->help).find(std::string("[") + option.name) != std::string::npos);
            CHECK(std::string(verb->help).find(std::string("\n  ") + option.name + " ") != std::string::npos);
        }
}
