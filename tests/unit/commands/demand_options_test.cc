#include "commands/dcs/run/demand_options.h"

#include <algorithm>
#include <cstring>

#include "commands/dcs/verbs.h"
#include "support/catch.h"

using namespace dcs;
using namespace dcs::commands;

namespace {

Status parse(const std::vector<std::string> &line, Arguments &arguments) {
    return parse_arguments(line, with_demands({}), true, arguments);
}

wire::Demands said(const std::vector<std::string> &line) {
    Arguments arguments;
    const Status parsed = parse(line, arguments);
    INFO(parsed.text);
    REQUIRE(parsed);
    wire::Demands demands;
    REQUIRE_FALSE(take_demands(arguments, demands));
    return demands;
}

}  // namespace

TEST_CASE("demands: nothing said is one attempt anywhere") {
    wire::Demands once;
    once.attempts = 1;
    CHECK(said({"cmd"}) == once);
}

TEST_CASE("demands: each option reaches its own field") {
    CHECK(said({"--class", "0x6", "--attempts", "4", "--cores", "2", "--memory=512", "--wall", "1.5m", "--thrash", "64",
                "--notice", "3", "--urgent", "cmd", "--cores"}) == wire::Demands{6, 64, true, 3, 4, 2, 512, 90});
    CHECK(said({"--wall", "0.2"}).wall_s == 1);  // 0 is no limit
    CHECK(said({"--wall", "0", "--cores", "0", "--memory", "0"}) == said({}));
}

TEST_CASE("demands: what makes no sense is a usage error that names option and value") {
    const std::vector<std::vector<std::string>> wrong = {
        {"--class", "gpu,"},  {"--attempts", "0"}, {"--attempts", "256"}, {"--cores", "-1"},
        {"--cores", "65537"}, {"--memory", "-1"},  {"--memory", "1x"},    {"--wall", "-1"},
        {"--wall", "soon"},   {"--thrash", "-1"},  {"--notice", "-1"},    {"--notice", "1h"}};
    for (const auto &line : wrong) {
        CAPTURE(line[0], line[1]);
        Arguments arguments;
        CHECK(parse(line, arguments).text.rfind(line[0] + " " + line[1] + ": ", 0) == 0);
    }
}

TEST_CASE("dcs run and dcs map know every demand, and their help says so") {
    for (const Verb *verb : {&run_verb, &map_verb})
        for (const OptionRow &option : with_demands({})) {
            CAPTURE(verb->name, option.name);
            const auto same = [&](const OptionRow &o) { return std::strcmp(o.name, option.name) == 0; };
            CHECK(std::count_if(verb->options.begin(), verb->options.end(), same) == 1);
            const std::string help = help_of(*verb);
            CHECK(help.find("[" + shown(option)) != std::string::npos);
            CHECK(help.find("\n  " + shown(option) + " ") != std::string::npos);
        }
}
