#include "commands/dcs/map/files.h"

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sys/stat.h>
#include <unistd.h>
#include <utime.h>

#include "commands/dcs/map/checks.h"
#include "commands/dcs/map/session.h"
#include "support/about.h"
#include "support/scratch.h"

using namespace dcs;
using namespace dcs::commands;

namespace {

using test::Folder;

struct Map {
    const Folder folder;
    MapPlan plan{{"./prog", "table", "-x{}", "out"}, folder.path, {"a", "b", "no file"}};
    FileWords brought;
    Map() {
        folder.write("prog", "1");
        folder.write("table", "2");
        folder.write("a", "3");
        folder.write("b", "4");
    }
    std::vector<MapFile> files() const { return files_of({{plan, folder.path + "/prog", brought}}); }
};

}  // namespace

TEST_CASE("files that a map names have a fingerprint, and what has changed is told by its name") {
    Map map;
    const std::string before = fingerprint_of(map.files());
    CHECK(before.size() == 24);
    CHECK(before.find_first_not_of("0123456789abcdef") == std::string::npos);
    CHECK(changed_in_command(before, map.files()).empty());
    CHECK(changed_in_inputs(before, map.files()).empty());
    CHECK(changed_in_command("", map.files()).empty());  // of an earlier release: nothing is known

    map.folder.write("prog", "1");  // written again, with the same contents
    CHECK(fingerprint_of(map.files()) == before);
    map.folder.write("prog", "x");
    CHECK(changed_in_command(before, map.files()) == "./prog");
    map.folder.write("table", "x");
    CHECK(changed_in_command(before, map.files()) == "./prog and table");
    CHECK(changed_in_inputs(before, map.files()).empty());
    map.folder.write("prog", "1");
    map.folder.write("table", "2");
    map.folder.write("b", "x");
    CHECK(changed_in_command(before, map.files()).empty());
    CHECK(changed_in_inputs(before, map.files()).rfind("one of the files that the inputs or --file name (", 0) == 0);
}

TEST_CASE("the first inputs of a list have the fingerprint of a shorter one") {
    Map map;
    map.brought.files = {{"", "table"}};
    const auto first = [&](std::size_t inputs) {
        return fingerprint_of(files_of({{map.plan, map.folder.path + "/prog", map.brought, inputs}}));
    };
    const std::string one = first(1), two = first(2);
    CHECK(one != two);
    map.folder.write("b", "x");
    CHECK(first(1) == one);
    CHECK(first(2) != two);
    map.plan.inputs.pop_back();
    CHECK(first(2) == fingerprint_of(map.files()));
}

TEST_CASE("files that --file brings count, one for all grains and one for each") {
    Map map;
    map.plan.inputs = {"1", "2"};
    map.brought.files = {{"d", map.folder.path + "/data"}, {"in", map.folder.path + "/in.{}"}};  // not of its directory
    for (const char *name : {"data", "in.1", "in.2"}) map.folder.write(name, "1");
    const std::string before = fingerprint_of(map.files());
    for (const char *name : {"data", "in.1", "in.2"}) {
        map.folder.write(name, "x");
        CHECK(changed_in_inputs(before, map.files()) == about("the inputs or --file name"));
        map.folder.write(name, "1");
        CHECK(changed_in_inputs(before, map.files()).empty());
    }
}

TEST_CASE("what grains may have made does not count as changed, what is gone does") {
    const Map map;
    const std::string before = fingerprint_of(map.files());
    map.folder.write("out", "made");  // the word after it in its part was not there before
    const auto now = changed_in_command(before, map.files());
    // table and out share digits, so they cannot be distinguished
    CHECK(now.rfind("one of the files that the command names (", 0) == 0);
    map.folder.remove("out");
    map.folder.remove("table");
    CHECK(changed_in_command(before, map.files()) == about("the command names removed"));

    MapPlan plan{{"prog", "out"}, map.folder.path, {"x"}};
    const std::string none = fingerprint_of(files_of({{plan, "", {}}}));
    CHECK(none == std::string(24, '0'));
    map.folder.write("out", "made");
    CHECK(changed_in_command(none, files_of({{plan, "", {}}})).empty());
}

TEST_CASE("of large files size and time count") {
    const Map map;
    map.folder.write("table", std::string(17 << 20, 'x'));
    const std::string path = std::string(map.folder.path) + "/table", before = fingerprint_of(map.files());
    const utimbuf then = {1, 1};
    REQUIRE(::utime(path.c_str(), &then) == 0);
    CHECK(changed_in_command(before, map.files()) == "table");
}

TEST_CASE("a run is complete when its session is closed, nothing waits, and all results were handed out") {
    Session session;
    session.state = "terminated";
    session.finished = session.sent = 3;
    CHECK(end_of_run(session) == RunEnd::complete);
    session.sent = 2;
    CHECK(end_of_run(session) == RunEnd::interrupted);
    session.sent = 3;
    session.ready = 1;
    CHECK(end_of_run(session) == RunEnd::interrupted);
    session.ready = 0;
    session.state = "active";
    CHECK(end_of_run(session) == RunEnd::interrupted);
}

TEST_CASE("a directory of inputs that grains of another uid may not enter is found") {
    Map map;
    const std::int64_t own = ::geteuid(), other = own + 1;
    const auto closed = [&](const char *directory, mode_t mode) { REQUIRE(::chmod(directory, mode) == 0); };
    const std::string inner = map.folder.path + "/inner";
    REQUIRE(::mkdir(inner.c_str(), 0700) == 0);
    map.folder.write("inner/f", "1");
    closed(map.folder.path.c_str(), 0711);
    CHECK(closed_directory(map.plan, other).empty());
    map.plan.inputs = {"no file", "inner/f"};
    CHECK(closed_directory(map.plan, other) == inner);
    CHECK(closed_directory(map.plan, own).empty());
    closed(inner.c_str(), 0710);  // perhaps they are of the group
    CHECK(closed_directory(map.plan, other).empty());
    closed(map.folder.path.c_str(), 0700);
    CHECK(closed_directory(map.plan, other) == map.folder.path);
}
