#include "commands/dcs/arguments.h"

#include "support/catch.h"

using namespace dcs;
using namespace dcs::commands;

namespace {
const std::vector<Option> known = {
    {"--local", 0, true}, {"--new", 0, false}, {"--output", 'o', true}, {"--help", 'h', false}};
}

TEST_CASE("options and words") {
    Arguments a;
    REQUIRE(parse_arguments({"one", "--local", "2", "-ojson", "--new", "two"}, known, false, a));
    CHECK(a.words == std::vector<std::string>{"one", "two"});
    CHECK(a.value("--local") == "2");
    CHECK(a.value("--output") == "json");
    CHECK(a.has("--new"));
    CHECK_FALSE(a.has("--help"));
    CHECK_FALSE(a.value("--help"));
}

TEST_CASE("an option's value may be joined, empty, or given twice") {
    Arguments a;
    REQUIRE(parse_arguments({"--local=", "-o", "name", "--output=json"}, known, false, a));
    CHECK(a.value("--local") == "");
    CHECK(a.value("--output") == "json");
}

TEST_CASE("a command line that follows is left alone") {
    Arguments a;
    REQUIRE(parse_arguments({"--new", "cmd", "--local", "2", "--", "-h"}, known, true, a));
    CHECK(a.words == std::vector<std::string>{"cmd", "--local", "2", "--", "-h"});
    CHECK_FALSE(a.has("--local"));

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
    CHECK(a.value("--output") == "json");
}

TEST_CASE("numbers") {
    CHECK(number_of("0", 0, 10) == 0);
    CHECK(number_of("10", 0, 10) == 10);
    CHECK(number_of("0x1f", 0, 100) == 31);
    CHECK_FALSE(number_of("11", 0, 10));
    CHECK_FALSE(number_of("-1", 0, 10));
    CHECK_FALSE(number_of("", 0, 10));
    CHECK_FALSE(number_of("1x", 0, 10));
    CHECK_FALSE(number_of("0x", 0, 10));
    CHECK_FALSE(number_of("0x-1", -5, 10));
    CHECK_FALSE(number_of("99999999999999999999", 0, INT64_MAX));
    CHECK(class_of("0xffffffff") == 0xffffffffu);
    CHECK_FALSE(class_of("0x100000000"));
}

TEST_CASE("seconds") {
    CHECK(seconds_of_text("1.5") == 1.5);
    CHECK(seconds_of_text("90s") == 90.0);
    CHECK(seconds_of_text("5m") == 300.0);
    CHECK(seconds_of_text("0.5h") == 1800.0);
    CHECK(seconds_of_text("0") == 0.0);
    for (const char *text : {"", "s", "-1", "1d", "nan", "inf", "1e99", "1 s"}) {
        CAPTURE(text);
        CHECK_FALSE(seconds_of_text(text));
    }
}

TEST_CASE("did you mean") {
    const std::vector<std::string> verbs = {"session", "status", "grain", "host",
                                            "up",      "down",   "map",   "run"};
    CHECK(nearest("sesion", verbs) == "session");
    CHECK(nearest("sessions", verbs) == "session");
    CHECK(nearest("stauts", verbs) == "status");
    CHECK(nearest("stat", verbs) == "status");
    CHECK(nearest("lss", {"ls", "show", "close"}) == "ls");
    CHECK(nearest("frobnicate", verbs).empty());
}
