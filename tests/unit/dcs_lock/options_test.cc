// The command line of dcs_lock: forms, options, units, and what is refused with which words.
#include "support/about.h"
#include "support/catch.h"

#include "commands/dcs_lock/option_table.h"

using namespace dcs;
using namespace dcs::lock_command;

namespace {

constexpr std::int64_t s = 1'000'000'000, m = 60 * s;

Options good(const std::vector<std::string> &line) {
    Options found;
    const Status status = parse(line, found);
    INFO(status.text);
    REQUIRE(status);
    return found;
}

std::string wrong(const std::vector<std::string> &line) {
    Options found;
    const Status status = parse(line, found);
    REQUIRE(!status);
    CHECK(status.text.find('\n') == std::string::npos);  // one line
    return status.text;
}

bool has(const std::string &text, const std::string &part) {
    INFO(text);
    INFO(part);
    const bool found = text == about(part);
    CHECK(found);
    return found;
}

using Words = std::vector<std::string>;

}  // namespace

TEST_CASE("a name and a command") {
    const Options o = good({"backup", "tar", "-c", "--", "x"});
    CHECK(o.verb == Verb::run);
    CHECK(o.name == "backup");
    CHECK(o.words == Words{"tar", "-c", "--", "x"});  // what is behind NAME is the command's
    CHECK(o.waits());
    CHECK(!o.adaptive);
    CHECK(o.keep == locks::Keep::both);
    CHECK(good({"backup", "--", "-n"}).words == Words{"-n"});
    CHECK(good({"-n", "backup", "-n"}).words == Words{"-n"});
}

TEST_CASE("waiting is the default, but not with -i or -e") {
    CHECK(good({"a", "true"}).waits());
    CHECK(!good({"-n", "a", "true"}).waits());
    CHECK(good({"-w", "30", "a", "true"}).waits());
    CHECK(!good({"-w", "0", "a", "true"}).waits());
    CHECK(!good({"-i", "15", "a", "true"}).waits());
    CHECK(!good({"-e", "90", "a", "true"}).waits());
    CHECK(good({"-e", "90", "-w", "5", "a", "true"}).waits());
}

TEST_CASE("times: a bare number counts seconds for -w and minutes for -i and -e") {
    CHECK(*good({"-w", "30", "a", "x"}).wait == 30 * s);
    CHECK(*good({"-w2m", "a", "x"}).wait == 2 * m);
    CHECK(*good({"--wait=1.5", "a", "x"}).wait == 3 * s / 2);
    CHECK(good({"-i", "15", "a", "x"}).if_elapsed == 15 * m);
    CHECK(good({"-e", "90s", "a", "x"}).expire_after == 90 * s);
    CHECK(good({"-e", "1.5h", "a", "x"}).expire_after == 90 * m);
    CHECK(good({"-e", "2d", "a", "x"}).expire_after == 2880 * m);
    CHECK(good({"-i", "0.5s", "a", "x"}).if_elapsed == s / 2);
    CHECK(good({"-i", "0.000000001s", "a", "x"}).if_elapsed == 1);
    CHECK(good({"-i", ".25", "a", "x"}).if_elapsed == 15 * s);
    CHECK(good({"-i", "0.0333333333333333333333", "a", "x"}).if_elapsed == 2 * s);
    CHECK(good({"-i", "auto", "-e", "auto", "a", "x"}).if_elapsed == locks::automatic);
    CHECK(good({"-i", "auto", "-e", "auto", "a", "x"}).expire_after == locks::automatic);
    CHECK(good({"-e", "never", "a", "x"}).expire_after == locks::no_limit);
}

TEST_CASE("P32 limits that are zero, infinite, negative or huge are taken as said, or refused with what to say") {
    CHECK(good({"-i", "0", "a", "x"}).if_elapsed == 0);
    has(wrong({"-e", "0", "a", "x"}), "never");
    has(wrong({"-e", "0s", "a", "x"}), "-e 0");
    CHECK(good({"--paper", "-e", "0", "a", "x"}).expire_after == 0);
    has(wrong({"-e", "inf", "a", "x"}), "use never");
    has(wrong({"-e", "infinite", "a", "x"}), "use never");
    has(wrong({"-i", "never", "a", "x"}), "not a time");
    has(wrong({"-i", "-5", "a", "x"}), "negative");
    has(wrong({"-e", "-1", "a", "x"}), "negative");
    has(wrong({"-w", "-1s", "a", "x"}), "negative");
    has(wrong({"-e", "99999999999999999999", "a", "x"}), "hundred years");
    has(wrong({"-e", "36501d", "a", "x"}), "hundred years");
    CHECK(good({"-e", "36500d", "a", "x"}).expire_after == std::int64_t{36500} * 1440 * m);
    for (const char *text : {"", ".", "s", "1.2.3", "1e3", "0x10", "5 m", "m5", "+5", "nan", "5mm"})
        has(wrong({"-i", text, "a", "x"}), "not a time");
}

TEST_CASE("E4 numbers of instances that are negative, words, too large or empty are refused") {
    CHECK(*good({"-j", "10", "a", "x"}).at_most == 10);
    CHECK(*good({"-j", "0", "a", "x"}).at_most == 0);
    CHECK(*good({"-j0%", "a", "x"}).at_most == 0);
    CHECK(*good({"-j", "1%", "a", "x"}).at_most == 1);  // of the processors, but never none
    for (const char *text :
         {"-1", "ten", "", "1e9", "99999999999999999999", "4294967297", "1.5", " 1", "%", "-5%", "@"})
        has(wrong({"-j", text, "a", "x"}), "-j");
    has(wrong({"-l", "a:ten", "x"}), "not a valid number");
    has(wrong({"-l", "a:-1", "x"}), "not a valid number");
    has(wrong({"-l", "a", "x"}), "NAME:N");
    has(wrong({"-l", ":2", "x"}), "NAME:N");
    has(wrong({"-j", "@/nonexistent/file", "a", "x"}), "cannot be read");
}

TEST_CASE("with -l the name may be left out, unless an option needs an atom") {
    Options o = good({"-l", "total:10", "-l", "user-%u:2", "make", "-j4"});
    CHECK(o.name.empty());
    CHECK(o.words == Words{"make", "-j4"});
    REQUIRE(o.limits.size() == 2);
    CHECK(o.limits[1].name == "user-%u");
    CHECK(o.limits[1].count == 2);
    CHECK(good({"-l", "/run/a:b:3", "x"}).limits[0].name == "/run/a:b");
    o = good({"-l", "total:10", "-i", "15", "edit", "vi"});
    CHECK(o.name == "edit");
    CHECK(o.words == Words{"vi"});
    has(wrong({"-l", "total:10", "-i", "15", "edit"}), "no command follows");
    has(wrong({"-l", "total:10"}), "command is missing");
}

TEST_CASE("option -a spells an atom out and takes no name") {
    const Options o = good({"-i", "15", "-a", "edit:/etc/motd:x", "vi", "file"});
    REQUIRE(o.atom);
    CHECK(o.atom->operation == "edit");
    CHECK(o.atom->operand == "/etc/motd:x");
    CHECK(o.name.empty());
    CHECK(o.words == Words{"vi", "file"});
    CHECK(good({"-a", "edit:", "vi"}).atom->operand.empty());
    has(wrong({"-a", "edit", "vi"}), "OPERATOR:OPERAND");
    has(wrong({"-a", ":x", "vi"}), "OPERATOR:OPERAND");
    CHECK(good({"check", "-a", "edit:x"}).atom->operation == "edit");
    has(wrong({"check", "-a", "edit:x", "y"}), "both name");
}

TEST_CASE("a bare number without a command is a descriptor") {
    const Options o = good({"-n", "9"});
    CHECK(o.verb == Verb::descriptor);
    CHECK(o.descriptor == 9);
    CHECK(good({"9", "true"}).name == "9");
    has(wrong({"--", "9"}), "no command follows");
    has(wrong({"lock"}), "no command follows");
    has(wrong({"99999999999"}), "descriptor");
    has(wrong({"-i", "5", "9"}), "cannot combined descriptor");
    has(wrong({"-q", "9"}), "cannot combined descriptor");
}

TEST_CASE("verbs are reserved, two dashes or a slash escape them") {
    CHECK(good({"list"}).verb == Verb::list);
    CHECK(good({"list", "x"}).name == "x");
    CHECK(good({"-o", "json", "list"}).json);
    CHECK(good({"list", "x", "--json"}).json);
    const Options run = good({"--", "list", "x"});
    CHECK(run.verb == Verb::run);
    CHECK(run.name == "list");
    CHECK(good({"./list", "x"}).verb == Verb::run);
    CHECK(good({"check", "--", "list"}).name == "list");
    for (const char *verb : {"check", "wait", "break"}) has(wrong({verb}), std::string("dcs_lock ") + verb);
    has(wrong({"get", "edit"}), "OPERATOR OPERAND");
    has(wrong({"put", "a", "b", "c"}), "OPERATOR OPERAND");
    has(wrong({"get", "", "b"}), "operator is empty");
    has(wrong({"doctor", "x"}), "wrong number of words");
    has(wrong({"list", "a", "b"}), "wrong number of words");
    has(wrong({"list", ""}), "NAME is empty");
    CHECK(good({"pass"}).words.empty());
    CHECK(good({"pass", "sh", "-c", "x", "-v"}).words == Words{"sh", "-c", "x", "-v"});
    CHECK(good({"get", "edit", "/etc/motd", "-i", "5"}).if_elapsed == 5 * m);
    CHECK(good({"--help"}).verb == Verb::help);
    CHECK(good({"get", "--help"}).verb == Verb::help);
    CHECK(good({"-V"}).verb == Verb::version);
}

TEST_CASE("options that do not go together say so") {
    has(wrong({"list", "-q"}), "--queue cannot combined list");
    has(wrong({"--head", "a", "x"}), "--head cannot combined command");
    has(wrong({"-s", "-i", "5", "a", "x"}), "shared");
    has(wrong({"-s", "-j", "5", "a", "x"}), "shared");
    has(wrong({"--paper", "a", "x"}), "--paper needs");
    has(wrong({"--paper", "-i", "auto", "a", "x"}), "auto");
    has(wrong({"-e", "5", "--keep=fd", "a", "x"}), "--keep=exec");
    has(wrong({"--bogus", "a"}), "unknown option --bogus");
    has(wrong({"-nZ", "a"}), "unknown option -Z");
    has(wrong({"--queue=yes", "a", "x"}), "takes no value");
    has(wrong({"-w"}), "needs a value");
    has(wrong({"--report"}), "needs a value");
    has(wrong({}), "missing");
    has(wrong({"", "x"}), "NAME is empty");
}

TEST_CASE("values of single options") {
    CHECK(good({"-E", "9", "a", "x"}).busy_code == 9);
    has(wrong({"-E", "256", "a", "x"}), "0 to 255");
    CHECK(good({"-x", "a", "x"}).busy_is_ok);
    CHECK(good({"--since=start", "-i", "5", "a", "x"}).since == locks::Since::start);
    has(wrong({"--since=now", "-i", "5", "a", "x"}), "end or start");
    CHECK(good({"--keep=tree", "a", "x"}).keep == locks::Keep::tree);
    has(wrong({"--keep=none", "a", "x"}), "both leader tree exec fd");
    CHECK(good({"--mode=0660", "a", "x"}).mode == 0660);
    for (const char *mode : {"777", "0644", "4600", "x", "", "06600"}) has(wrong({"--mode", mode, "a", "x"}), "--mode");
    const Options grace = good({"--grace=1s,2s,3s", "-e", "5", "a", "x"});
    CHECK(grace.grace.after_int == s);
    CHECK(grace.grace.after_term == 2 * s);
    CHECK(grace.grace.after_kill == 3 * s);
    CHECK(good({"--grace=1", "a", "x"}).grace.after_kill == s);
    has(wrong({"--grace=1,2", "a", "x"}), "three");
    has(wrong({"--grace=1,2,3,4", "a", "x"}), "three");
    has(wrong({"--grace=1,,3", "a", "x"}), "not a time");
    CHECK(good({"--max-kills=0", "-e", "5", "a", "x"}).max_kills == 0);
    CHECK(*good({"--max-expire=2h", "-e", "auto", "a", "x"}).expire_max == 120 * m);
    CHECK(good({"--report", "3", "a", "x"}).report_fd == 3);
    has(wrong({"--report", "x", "a", "x"}), "a whole number from 0 to");
    has(wrong({"-o", "yaml", "a", "x"}), "json or table");
}

TEST_CASE("an error is told as JSON when JSON was asked for, also behind the error") {
    Options found;
    CHECK(!parse({"--bogus", "-o", "json", "a"}, found));
    CHECK(found.json);
    Options plain;
    CHECK(!parse({"--bogus", "--", "-o", "json"}, plain));
    CHECK(!plain.json);
}
