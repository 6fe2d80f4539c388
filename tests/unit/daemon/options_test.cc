#include "daemon/options.h"

#include "base/version.h"
#include "support/catch.h"

using namespace dcs;

namespace {
struct OptionFields {
    std::string dir, level = "info";
    int ready_fd = -1;
    Duration interval = seconds(10);
    bool once = false;
    std::vector<std::string> hosts;
    CommandLine line() {
        return {"dcs_example",
                "Shows how options work.",
                {{"dir", &dir, "DIR", "state directory", true},
                 {"log-level", &level, "LEVEL", "error, warn, info or debug"},
                 {"ready-fd", &ready_fd, "N", "where to write \"ready\""},
                 {"interval", &interval, "S", "seconds between call-ins"},
                 {"host", &hosts, "NAME", "may be repeated"},
                 {"once", &once, "", "one turn only"}}};
    }
};
}  // namespace

TEST_CASE("options go into their fields, in both forms") {
    OptionFields f;
    ParsedOptions parsed = parse_options(f.line(), {"--dir", "/a b", "--ready-fd=7", "--interval", "2.5", "--once",
                                                    "--host", "h1", "--host=h2", "--log-level=a=b"});
    CHECK(parsed.proceed);
    CHECK(parsed.error.empty());
    CHECK(f.dir == "/a b");
    CHECK(f.ready_fd == 7);
    CHECK(f.interval == milliseconds(2500));
    CHECK(f.once);
    CHECK(f.hosts == std::vector<std::string>{"h1", "h2"});
    CHECK(f.level == "a=b");
}

TEST_CASE("fields of options that were not given keep their values") {
    OptionFields f;
    REQUIRE(parse_options(f.line(), {"--dir=x"}).proceed);
    CHECK(f.ready_fd == -1);
    CHECK(f.interval == seconds(10));
    CHECK_FALSE(f.once);
    CHECK(f.level == "info");
    OptionFields g;
    REQUIRE(parse_options(g.line(), {"--dir=x", "--dir", "--once"}).proceed);
    CHECK(g.dir == "--once");  // a value is a value, and the last one counts
}

TEST_CASE("mistakes are named and end with 2") {
    struct {
        std::vector<std::string> arguments;
        const char *part;
    } mistakes[] = {
        {{}, "--dir DIR is required"},
        {{"--dirr=x"}, "unknown option --dirr; did you mean --dir?"},
        {{"--di=x"}, "unknown option"},
        {{"--dir=x", "more"}, "unexpected argument more"},
        {{"--dir=x", "--"}, "unexpected argument --"},
        {{"--dir=x", "-x"}, "unknown option -x"},
        {{"--dir"}, "--dir needs a value: DIR"},
        {{"--dir=x", "--once=1"}, "--once takes no value"},
        {{"--dir=x", "--ready-fd=-1"}, "--ready-fd -1: a whole number, at least 0"},
        {{"--dir=x", "--ready-fd="}, "whole number"},
        {{"--dir=x", "--ready-fd=99999999999"}, "whole number"},
        {{"--dir=x", "--ready-fd=3x"}, "whole number"},
        {{"--dir=x", "--interval=inf"}, "number of seconds"},
        {{"--dir=x", "--interval=-1"}, "number of seconds"},
        {{"--dir=x", "--interval=."}, "number of seconds"},
        {{"--dir=x", "--interval=1e9"}, "number of seconds"},
        {{"--dir=x", "--interval=1.2.3"}, "number of seconds"},
        {{"--dir=x", "\x1b[2J"}, "\\x1b[2J"},
    };
    for (const auto &mistake : mistakes) {
        OptionFields f;
        ParsedOptions parsed = parse_options(f.line(), mistake.arguments);
        INFO(parsed.error);
        CHECK_FALSE(parsed.proceed);
        CHECK(parsed.exit_code == 2);
        CHECK(parsed.out.empty());
        CHECK(parsed.error.find("dcs_example: ") == 0);
        CHECK(parsed.error.find(mistake.part) != std::string::npos);
        CHECK(parsed.error.find("--help") != std::string::npos);
    }
}

TEST_CASE("help and version need nothing else") {
    OptionFields f;
    ParsedOptions help = parse_options(f.line(), {"--help"});
    CHECK_FALSE(help.proceed);
    CHECK(help.exit_code == 0);
    CHECK(help.error.empty());
    for (const char *part : {"Usage: dcs_example --dir DIR", "Shows how", "--dir DIR", "state directory\n", "--once  ",
                             "--help", "--version"})
        CHECK(help.out.find(part) != std::string::npos);
    ParsedOptions version = parse_options(f.line(), {"--version"});
    CHECK_FALSE(version.proceed);
    CHECK(version.exit_code == 0);
    CHECK(version.out == "dcs_example (DCS) " DCS_VERSION "\n");
}
