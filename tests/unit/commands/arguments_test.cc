#include "commands/dcs/frame/arguments.h"

#include "support/catch.h"

using namespace dcs;
using namespace dcs::commands;

namespace {
const OptionTable known = {{"local", 0, "N", {}, ""},
                           {"new", 'n', nullptr, {}, ""},
                           {"output", 'o', "FORMAT", {}, ""},
                           {"help", 'h', nullptr, {}, ""}};
}

TEST_CASE("options and words") {
    Arguments a;
    REQUIRE(parse_arguments({"one", "--local", "2", "-ojson", "--new", "two"}, known, false, a));
    CHECK(a.words == std::vector<std::string>{"one", "two"});
    CHECK(a.value("local") == "2");
    CHECK(a.value("output") == "json");
    CHECK(a.has("new"));
    CHECK_FALSE(a.has("help"));
    CHECK_FALSE(a.value("help"));
}

TEST_CASE("an option's value may be joined, empty, or given twice") {
    Arguments a;
    REQUIRE(parse_arguments({"--local=", "-o", "name", "--output=json"}, known, false, a));
    CHECK(a.value("local") == "");
    CHECK(a.value("output") == "json");
}

TEST_CASE("a command line that follows is left alone") {
    Arguments a;
    REQUIRE(parse_arguments({"--new", "cmd", "--local", "2", "--", "-h"}, known, true, a));
    CHECK(a.words == std::vector<std::string>{"cmd", "--local", "2", "--", "-h"});
    CHECK_FALSE(a.has("local"));

    Arguments b;
    REQUIRE(parse_arguments({"--new", "--", "--local", "2"}, known, true, b));
    CHECK(b.words == std::vector<std::string>{"--local", "2"});

    Arguments c;
    REQUIRE(parse_arguments({"-", "x"}, known, false, c));
    CHECK(c.words == std::vector<std::string>{"-", "x"});
}

TEST_CASE("mistakes in options") {
    Arguments a;
    Status s = parse_arguments({"--locl", "2"}, known, false, a);
    CHECK(s.code == Code::invalid);
    CHECK(s.text.find("--locl") != std::string::npos);
    CHECK(s.text.find("did you mean --local?") != std::string::npos);
    CHECK_FALSE(parse_arguments({"--local"}, known, false, a));
    CHECK_FALSE(parse_arguments({"--new=1"}, known, false, a));
    CHECK_FALSE(parse_arguments({"-hx"}, known, false, a));
    CHECK_FALSE(parse_arguments({"-z"}, known, false, a));
}

TEST_CASE("what was understood before a mistake is kept") {
    Arguments a;
    CHECK_FALSE(parse_arguments({"-o", "json", "--bogus"}, known, false, a));
    CHECK(a.value("output") == "json");
}

TEST_CASE("how many words a verb takes is what its usage says") {
    const struct {
        const char *usage;
        std::vector<std::string> words;
        const char *wrong;
    } cases[] = {
        {"", {}, ""},
        {"", {"x"}, "it takes no arguments, but got `x`"},
        {"SEL", {}, "SEL is missing"},
        {"SEL", {"1"}, ""},
        {"SEL", {"1", "2"}, "`2` is one argument too many"},
        {"SEL...", {}, "SEL is missing"},
        {"SEL...", {"1", "2", "3"}, ""},
        {"[SEL...]", {}, ""},
        {"[SEL...]", {"1", "2"}, ""},
        {"SEL [DIR]", {"1"}, ""},
        {"SEL [DIR]", {"1", "d"}, ""},
        {"SEL [DIR]", {"1", "d", "e"}, "`e` is one argument too many"},
        {"[NAME WORDS]", {}, ""},
        {"[NAME WORDS]", {"a", "b"}, ""},
        {"[NAME WORDS]", {"a", "b", "c"}, "`c` is one argument too many"},
        {"NAME... [SES:G...]", {"a", "b", "c"}, ""},
        {"HOST:PORT[,HOST:PORT...]", {}, "HOST:PORT is missing"},
        {"HOST:PORT[,HOST:PORT...]", {"a", "b"}, "`b` is one argument too many"},
    };
    for (const auto &one : cases) {
        CAPTURE(one.usage, one.words);
        CHECK(check_word_count(one.usage, one.words).text == one.wrong);
    }
}
