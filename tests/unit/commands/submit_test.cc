// Files of `dcs submit`: what they mean, what is wrong with them, and the order in which their grains run.
#include <map>

#include "commands/dcs/submit/work.h"
#include "commands/dcs/submit/job_file.h"
#include "support/about.h"
#include "support/catch.h"

using namespace dcs;
using namespace dcs::commands;

namespace {

JobFile good(const std::string &text, const std::optional<std::vector<std::string>> &items = {}) {
    std::vector<std::string> errors;
    JobFile file = parse_job_file(text, "f", items, errors);
    for (const std::string &error : errors) FAIL_CHECK(error);
    return file;
}

std::string error_of(const std::string &text, const std::optional<std::vector<std::string>> &items = {}) {
    std::vector<std::string> errors;
    (void)parse_job_file(text, "f", items, errors);
    return errors.empty() ? "none" : errors[0];
}

const char *chain = R"([[grain]]
name = "a"
command = ["true"]
[[grain]]
name = "b"
command = ["true", "{}"]
array = "1-3"
after = "a"
[[grain]]
name = "c"
command = ["true"]
after = ["b", "a"]
[[grain]]
name = "d"
command = ["true"]
after = ["c"]
)";
using Tables = std::vector<std::size_t>;

}  // namespace

TEST_CASE("a job file says what it says") {
    const JobFile file = good(R"(label = "study"
nice = 3
[defaults]
memory = "2G"
env = { A = "1", B = 2 }
[[grain]]
name = "fit"
command = ["./fit", "{}"]
array = "1-3,9"
time = "1h"
cores = 2
urgent = true
file = ["x=data/x"]
[[grain]]
command = ["wc"]
input = "some\ntext"
memory = 100
after = ["fit"]
)");
    CHECK(file.session.value("label") == "study");
    CHECK(file.session.number("nice") == 3);
    REQUIRE(file.grains.size() == 2);
    const JobGrain &fit = file.grains[0], &second = file.grains[1];
    CHECK(fit.items == std::vector<std::string>{"1", "2", "3", "9"});
    CHECK(fit.options.megabytes("memory") == 2048);
    CHECK(fit.options.seconds("time") == 3600);
    CHECK(fit.options.number("cores") == 2);
    CHECK((fit.options.has("urgent") && !second.options.has("urgent")));
    CHECK(fit.options.value("file") == "x=data/x");
    CHECK(second.name == "grain2");
    CHECK(second.input == "some\ntext");
    CHECK(second.options.megabytes("memory") == 100);
    CHECK(second.options.value("env") == "B=2");
    CHECK(second.after == Tables{0});
    CHECK((fit.first == 1 && second.first == 5 && file.count == 5));
}

TEST_CASE("errors of a job file name line and column") {
    const std::string head = "[[grain]]\ncommand = [\"true\"]\n";
    CHECK(error_of("x = [") == about("f:1:"));
    CHECK(error_of("") == about("f: [[grain]]"));
    CHECK(error_of("lable = \"x\"\n" + head) == about("f:1:1: lable label"));
    CHECK(error_of(head + "memroy = 3\n") == about("f:3:1: memroy memory"));
    CHECK(error_of(head + "memory = \"much\"\n") == about("f:3:10: memory \"much\""));
    CHECK(error_of(head + "cores = \"2x\"\n") == about("f:3:9: cores"));
    CHECK(error_of(head + "urgent = 1\n") == about("f:3:10: urgent true false"));
    CHECK(error_of("[[grain]]\nname = \"a\"\n") == about("f:1:1: command missing"));
    CHECK(error_of("[[grain]]\ncommand = \"true\"\n") == about("f:2:11: command array"));
    CHECK(error_of("[[grain]]\ncommand = []\n") == about("f:2:11: command empty"));
    CHECK(error_of("[[grain]]\ncommand = [1]\n") == about("f:2:12: command string"));
    CHECK(error_of(head + "name = \"a b\"\n") == about("f:3:8: name"));
    CHECK(error_of(head + "name = \"a\"\n" + head + "name = \"a\"\n") == about("f:6:8: a"));
    CHECK(error_of(head + "name = \"prepare\"\n" + head + "after = \"prepar\"\n") == about("f:6:9: prepar prepare"));
    CHECK(error_of(head + "array = \"9-1\"\n") == about("f:3:9: array"));
    CHECK(error_of(head + "array = \"1\"\neach-line = \"x\"\n") == about("f:4:13: array each-line"));
    CHECK(error_of(head + "each-line = \"/nowhere/x\"\n") == about("f:3:13: each-line /nowhere/x"));
    CHECK(error_of(head + "input = \"a\"\ninput-file = \"b\"\n") == about("f:4:14: input input-file"));
    CHECK(error_of(head + "name = \"a\"\nafter = \"b\"\n" + head + "name = \"b\"\nafter = \"a\"\n") ==
          about("f:1:1: after a b"));
    CHECK(error_of(head + "name = \"a\"\nafter = \"a\"\n") == about("f:1:1: a"));
    CHECK(error_of(head + "array = \"0-999999\"\n" + head) == about("million"));
    CHECK(error_of("grain = 3\n") == about("f: [[grain]]"));
}

TEST_CASE("a key of a hundred thousand parts is refused before it fills the stack") {
    std::string deep = "\n", numbers = "[[grain]]\ncommand = [\"a\"]\ninput = \"\"\"\n";
    for (int i = 0; i < 100'000; ++i) deep += i % 2 ? "a . " : "\"b\".";
    for (int i = 0; i < 5000; ++i) numbers += "1.5 ";
    CHECK(error_of(deep + "c = 1\n") == "f:2: a key has more than 1000 parts");
    CHECK(error_of(numbers + "\"\"\"\n") == "none");
}

TEST_CASE("items of the command line are for a file with one grain") {
    const std::vector<std::string> items = {"x", "y"};
    CHECK(good("[[grain]]\ncommand = [\"true\"]\n", items).count == 2);
    CHECK(error_of(chain, items) == about("--array --each-line one"));
}

TEST_CASE("ranges of an array") {
    CHECK(*items_of_array("7") == std::vector<std::string>{"7"});
    CHECK(*items_of_array("0-2,5") == std::vector<std::string>{"0", "1", "2", "5"});
    CHECK(*items_of_array("1-10:4,7-8:9") == std::vector<std::string>{"1", "5", "9", "7"});
    CHECK(items_of_array("0-2147483647:1000000")->size() == 2148);
    const std::map<std::string, std::string> wrong = {{"", "ranges"},
                                                      {"1,", "ranges"},
                                                      {"x", "N-M:STEP"},
                                                      {"1-", "N-M:STEP"},
                                                      {"-1", "N-M:STEP"},
                                                      {"1-2-3", "N-M:STEP"},
                                                      {"1.5", "N-M:STEP"},
                                                      {"1-9:0", "N-M:STEP"},
                                                      {"1-9:", "N-M:STEP"},
                                                      {"1-99999999999", "2147483647"},
                                                      {"10-1", "10-1 last less than first"},
                                                      {"0-1000000", "million"},
                                                      {"0-999999,1", "million"},
                                                      {"1-10%2", "% slots"}};
    for (const auto &[text, words] : wrong) {
        CAPTURE(text);
        CHECK(items_of_array(text).status().text == about(words));
    }
}

TEST_CASE("grains start when all that they come after has succeeded") {
    const JobFile file = good(chain);
    JobFlow flow(file);
    CHECK(flow.take_startable() == Tables{0});
    CHECK(flow.take_startable().empty());
    flow.ended(1, false);
    CHECK(flow.take_startable() == Tables{1});
    flow.ended(3, false);
    flow.ended(2, false);
    flow.ended(2, false);  // told twice
    CHECK(flow.take_startable().empty());
    flow.ended(4, false);
    CHECK(flow.take_startable() == Tables{2});
    CHECK_FALSE(flow.over());
    flow.ended(5, false);
    CHECK(flow.take_startable() == Tables{3});
    flow.ended(6, false);
    CHECK(flow.over());
    CHECK((flow.count_ended() == 6 && flow.count_failed() == 0 && flow.count_barred() == 0));
}

TEST_CASE("what comes after a failed grain does not run, and says why") {
    const JobFile file = good(chain);
    JobFlow flow(file);
    (void)flow.take_startable();
    flow.ended(1, false);
    (void)flow.take_startable();
    flow.ended(2, true);
    CHECK_FALSE(flow.over());  // its siblings run on
    flow.ended(3, false);
    flow.ended(4, false);
    CHECK(flow.take_startable().empty());
    CHECK(flow.over());
    CHECK(flow.why_barred(2) == about("after b failed"));
    CHECK(flow.why_barred(3) == about("after c not run"));
    CHECK((flow.count_failed() == 1 && flow.count_barred() == 2));
}

TEST_CASE("a table without items is done when it would start") {
    const JobFile file = good(
        "[[grain]]\nname = \"a\"\ncommand = [\"true\"]\neach-line = \"/dev/null\"\n[[grain]]\nname = "
        "\"b\"\ncommand = [\"true\"]\nafter = \"a\"\n");
    JobFlow flow(file);
    CHECK(flow.take_startable() == Tables{1});
    flow.ended(1, false);
    CHECK(flow.over());
}

TEST_CASE("what an earlier run's grains gave before this run came to them is submitted all the same") {
    const JobFile file = good(chain);
    JobFlow flow(file);
    CHECK(flow.take_startable() == Tables{0});
    for (const int grain : {5, 2}) flow.ended(grain, false);
    CHECK(flow.take_startable() == Tables{3});
    flow.ended(1, false);
    CHECK(flow.take_startable() == Tables{1});
    for (const int grain : {3, 4}) flow.ended(grain, false);
    CHECK(flow.take_startable() == Tables{2});
    CHECK(flow.take_startable().empty());
    flow.ended(6, false);
    CHECK(flow.over());
}

TEST_CASE("a file is the same work while only demands differ") {
    const auto ident = [](const std::string &text, const std::string &directory = "/here") {
        return ident_of_job(directory, good(text));
    };
    const std::string grain = "[[grain]]\ncommand = [\"a\", \"{}\"]\narray = \"1-3\"\n";
    const std::string same = ident(grain);
    for (const char *demand :
         {"time = \"2h\"", "wall = 9", "memory = \"4G\"", "cores = 2", "attempts = 3", "urgent = true",
          "class = \"0x2\"", "resource = \"gpu=1\"", "notice = 1", "thrash = 2"}) {
        INFO(demand);
        CHECK(ident(grain + demand + "\n") == same);
    }
    CHECK(ident("[defaults]\ntime = \"1h\"\n# a remark\n" + grain) == same);
    for (const char *more :
         {"env = [\"A=1\"]", "output = [\"o={#}\"]", "input = \"text\"", "name = \"n\"", "cwd = \"/\""}) {
        INFO(more);
        CHECK(ident(grain + more + "\n") != same);
    }
    CHECK(ident(grain, "/there") != same);
    CHECK(ident("[[grain]]\ncommand = [\"b\", \"{}\"]\narray = \"1-3\"\n") != same);
    CHECK(ident("[[grain]]\ncommand = [\"a\", \"{}\"]\narray = \"1-4\"\n") != same);
    const std::string two = "[[grain]]\nname = \"x\"\ncommand = [\"a\"]\n[[grain]]\nname = \"y\"\ncommand = [\"a\"]\n";
    CHECK(ident(two) != ident(two + "after = \"x\"\n"));
}
