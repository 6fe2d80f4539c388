#include "commands/dcs/run/caller_environment.h"
#include "commands/dcs/map/checks.h"
#include "commands/dcs/map/plan.h"
#include "commands/dcs/run/placeholders.h"

#include "support/about.h"
#include "support/catch.h"

using namespace dcs;
using namespace dcs::commands;
using Words = std::vector<std::string>;

TEST_CASE("inputs are lines") {
    CHECK(*split_inputs("", '\n') == Words{});
    CHECK(*split_inputs("a\nb\n", '\n') == Words{"a", "b"});
    CHECK(*split_inputs("a\nb", '\n') == Words{"a", "b"});
    CHECK(*split_inputs("\n\nx\n", '\n') == Words{"", "", "x"});
    CHECK(*split_inputs(std::string_view("a\0b c\nd\0", 8), '\0') == Words{"a", "b c\nd"});
}

TEST_CASE("a NUL byte in a line is told with its line") {
    auto r = split_inputs(std::string_view("a\nb\0c\n", 6), '\n');
    REQUIRE_FALSE(r);
    CHECK(r.status().text.find("line 2") != std::string::npos);
}

TEST_CASE("the placeholder is replaced everywhere, else the input is appended") {
    CHECK(words_of({"echo", "{}"}, "x", 1) == Words{"echo", "x"});
    CHECK(words_of({"echo"}, "x y", 1) == Words{"echo", "x y"});
    CHECK(words_of({"cp", "{}.c", "b/{}-{}"}, "n", 1) == Words{"cp", "n.c", "b/n-n"});
    CHECK(words_of({"{}", "-l"}, "ls", 1) == Words{"ls", "-l"});
    CHECK(words_of({"echo", "{}"}, "", 1) == Words{"echo", ""});
    // What was put in is not looked at again.
    CHECK(words_of({"echo", "{}{}"}, "{}", 1) == Words{"echo", "{}{}"});
    CHECK(words_of({"echo", "{", "}"}, "x", 1) == Words{"echo", "{", "}", "x"});
}

TEST_CASE("the other placeholders are GNU parallel's") {
    CHECK(words_of({"{#}:{}"}, "x", 17) == Words{"17:x"});
    CHECK(words_of({"{.}.o", "{/}", "{//}", "{/.}"}, "src/a.b/c.tar.gz", 1) ==
          Words{"src/a.b/c.tar.o", "c.tar.gz", "src/a.b", "c.tar"});
    CHECK(words_of({"{.}", "{/}", "{//}", "{/.}"}, "plain", 1) == Words{"plain", "plain", ".", "plain"});
    CHECK(words_of({"{.}", "{/}", "{//}"}, "a.b/c", 1) == Words{"a.b/c", "c", "a.b"});
    CHECK(words_of({"{//}", "{/}"}, "/etc", 1) == Words{"/", "etc"});
    CHECK(words_of({"{/}", "{//}"}, "dir/", 1) == Words{"", "."});
    CHECK(words_of({"{//}", "{/}"}, "a/dir//", 1) == Words{"a", ""});
    CHECK(words_of({"{//}"}, "//", 1) == Words{"/"});
    // Only they count, and what was put in is not looked at again.
    CHECK(words_of({"{x}", "{", "{/", "{%}"}, "in", 1) == Words{"{x}", "{", "{/", "{%}", "in"});
    CHECK(words_of({"{}{#}"}, "{#}", 3) == Words{"{#}3"});
    CHECK(has_placeholder("bin/{#}"));
    CHECK_FALSE(has_placeholder("bin/{##}"));
}

TEST_CASE("columns are placeholders of inputs that have some") {
    const std::string input("a/b.c\0d e\0", 10);
    CHECK(words_of({"{2}:{1}", "{1/}{1.}", "{-1}{3}{0}", "{}"}, input, 1) ==
          Words{"d e:a/b.c", "b.ca/b", "d e", "a/b.c d e"});
    CHECK(words_of({"cmd"}, input, 1) == Words{"cmd", "a/b.c", "d e"});
    CHECK(words_of({"cmd", "{}", "{}!"}, input, 1, true, true) == Words{"cmd", "a/b.c", "d e", "a/b.c d e!"});
    CHECK(words_of({"${1}", "{1", "{1x}", "{-}", "{#}", "${#}"}, input, 7) ==
          Words{"${1}", "{1", "{1x}", "{-}", "7", "${#}"});
    CHECK(words_of({"{1}"}, "x", 1) == Words{"{1}", "x"});
    CHECK(has_placeholder("a{-1//}", true));
    CHECK_FALSE(has_placeholder("a{1}"));
    CHECK(columns_of(std::string("\0\0", 2)) == Words{"", ""});
}

TEST_CASE("short work on many inputs, each in a grain of its own, runs faster together") {
    MapPlan plan{{"true", "{}"}, "/tmp", std::vector<std::string>(1000, "x")};
    CHECK(better_together(plan, 2) == about("-n 100 each 100 inputs"));
    CHECK(better_together(plan, 20).empty());  // seconds of processor time: long work
    plan.columns = true;                       // as of -n
    CHECK(better_together(plan, 2).empty());
    plan.columns = false;
    plan.inputs.pop_back();
    CHECK(better_together(plan, 2).empty());
}

TEST_CASE("the ident is the same for the same map, and for no other") {
    const MapPlan plan{{"printf", "%s\n", "{}"}, "/tmp", {"1", "2", "3"}};
    // Recorded sessions are found by this text: it must never change.
    CHECK(ident_of(plan) == "map-7733c84a136043ea775e8832");
    const MapPlan same = plan;
    CHECK(ident_of(same) == ident_of(plan));
    const MapPlan others[] = {
        {{"printf", "%s\n", "{}"}, "/tmp", {"1", "2"}},
        {{"printf", "%s\n", "{}"}, "/tmp", {"1", "2", "3", ""}},
        {{"printf", "%s\n", "{}"}, "/tmp/x", {"1", "2", "3"}},
        {{"printf", "%s\n{}"}, "/tmp", {"1", "2", "3"}},
        {{"printf", "%s\n", "{}"}, "/tmp", {"12", "3"}},
        {{"printf", "%s\n", "{}", "/tmp"}, "", {"1", "2", "3"}},
        {{"printf", "%s\n", "{}"}, "/tmp", {"1", "3", "2"}},
        {.command = plan.command, .directory = "/tmp", .inputs = plan.inputs, .spread = true},
        {.command = plan.command, .directory = "/tmp", .inputs = plan.inputs, .settings = {"env", "A=1"}},
        {.command = plan.command, .directory = "/tmp", .inputs = plan.inputs, .settings = {"file", "A=1"}},
    };
    for (const MapPlan &other : others) CHECK(ident_of(other) != ident_of(plan));
    for (const MapPlan &other : others) CHECK(has_words_of(ident_of(other), ident_of(plan)) == !other.settings.empty());
    CHECK(ident_of(plan, 2) == ident_of(others[0]));
    CHECK(ident_of(others[1], 3) == ident_of(plan));
    CHECK(ident_of(plan, 4) == ident_of(plan));
}

TEST_CASE("the ident fits the library's rules") {
    const std::string ident = ident_of({{"x"}, "/", {"a"}}) + "-0123abcd";
    CHECK(ident.size() <= 64);
    CHECK(ident.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-") == std::string::npos);
}

TEST_CASE("sessions of --new belong to the same map") {
    CHECK(is_run_of("map-12ab", "map-12ab"));
    CHECK(is_run_of("map-12ab-00ff", "map-12ab"));
    CHECK_FALSE(is_run_of("map-12abc", "map-12ab"));
    CHECK_FALSE(is_run_of("map-12a", "map-12ab"));
    CHECK_FALSE(is_run_of("find_factor-12ab", "map-12ab"));
}

TEST_CASE("variables that two environments do not have in common, without their values") {
    const Words env = {"A=1", "HOME=/root", "PATH=/bin"};
    CHECK(variables_that_differ(env, env).empty());
    CHECK(changed_values(env, env).empty());
    CHECK(changed_values(env, {"A=2", "HOME=/root", "PATH=/bin"}) == "A");
    CHECK(changed_values(env, {"HOME=/home/ann", "PATH=/sbin"}).empty());
    CHECK(changed_values(env, {"A=1", "AA=2", "B=3"}).empty());
    CHECK(changed_values({}, {"A=1"}).empty());
    const auto job = [](const std::string &n) {
        return Words{"KRB5CCNAME=/tmp/" + n,     "LC_ALL=" + n,       "MY_PATH=/data/" + n,
                     "SLURM_ARRAY_TASK_ID=" + n, "SLURM_JOB_ID=" + n, "SUDO_COMMAND=" + n};
    };
    CHECK(changed_values(job("1"), job("2")) == "MY_PATH, SLURM_ARRAY_TASK_ID");
    const auto batch = [](const std::string &n) {
        return Words{"PBS_ARRAY_INDEX=" + n, "PBS_JOBID=" + n, "PRETTY_X=" + n, "STARSHIP_SESSION_KEY=" + n};
    };
    CHECK(changed_values(batch("1"), batch("2")) == "PBS_ARRAY_INDEX, PRETTY_X");
    CHECK(variables_that_differ(env, {"A=2", "HOME=/root", "PATH=/bin"}) == "A");
    CHECK(variables_that_differ(env, {"A=1", "PATH=/sbin"}) == "HOME, PATH");
    CHECK(variables_that_differ({}, {"A=1", "B", "C=3", "D=4", "E=5"}) == "A, B, C and 2 more");
}

TEST_CASE("exit code as of GNU parallel") {
    CHECK(exit_for_failed(0) == 0);
    CHECK(exit_for_failed(1) == 1);
    CHECK(exit_for_failed(100) == 100);
    CHECK(exit_for_failed(101) == 101);
    CHECK(exit_for_failed(1000000) == 101);
}

TEST_CASE("the ident of a run says which map, and what its files were") {
    const std::string base = "map-7733c84a136043ea775e8832", files(24, 'a');
    const std::string ident = ident_of_run(base, files, "0123abcd");
    CHECK(ident == base + "." + files + "-0123abcd");
    CHECK(ident.size() <= 64);
    CHECK(is_run_of(ident, base));
    CHECK(fingerprint_in(ident, base) == files);
    for (const std::string &older : {base, base + "-0123abcd"}) {
        CHECK(is_run_of(older, base));
        CHECK(fingerprint_in(older, base).empty());
    }
    CHECK_FALSE(is_run_of(base + "0", base));
    CHECK(fingerprint_in("another", base).empty());
}

TEST_CASE("the ident of a run says how many inputs its list has, and whether it left some out") {
    for (const std::size_t inputs :
         {std::size_t{1}, std::size_t{35}, std::size_t{36}, std::size_t{1'000'000}, std::size_t{INT32_MAX}})
        for (const bool goes_on : {false, true}) {
            CAPTURE(inputs, goes_on);
            const std::string base = "map-7733c84a136043ea775e8832", files(24, 'a');
            const std::string ident = ident_of_run(base, files, suffix_of_run({inputs, goes_on}, "0123abcd"));
            const auto list = list_in(ident);
            REQUIRE(list);
            CHECK(list->inputs == inputs);
            CHECK(list->goes_on == goes_on);
            CHECK(ident.size() <= 64);
            CHECK(fingerprint_in(ident, base) == files);
            CHECK(suffix_of_run({inputs, goes_on}, "fedc0000") != suffix_of_run({inputs, goes_on}, "0123abcd"));
        }
    for (const char *other : {"map-7733c84a136043ea775e8832", "map-77.aa-0123abcd", "map-77-m", "map-77-w_",
                              "map-77-wx", "map-77-w!_0", ""})
        CHECK_FALSE(list_in(other));
}

TEST_CASE("a line for a shell is told from a program, and how to hand it to one") {
    for (const char *line : {"echo {} | wc -c", "a b", "x>y", "a;b", "$HOME/x", "*.sh"}) CHECK(is_shell_text(line));
    for (const char *name : {"echo", "./run-it.sh", "/usr/bin/c++", "{}", "{.}_x,y=z"})
        CHECK_FALSE(is_shell_text(name));
    CHECK(through_a_shell("echo {} | wc -c") == R"(sh -c 'echo "$1" | wc -c' sh {})");
    CHECK(through_a_shell("gzip -c {} > {.}.gz") == R"(sh -c 'gzip -c "$1" > "$2".gz' sh {} {.})");
    CHECK(through_a_shell("date | wc") == "sh -c 'date | wc'");
    CHECK(through_a_shell("echo 'a'") == R"(sh -c 'echo '\''a'\''')");
}
