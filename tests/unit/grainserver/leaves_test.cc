// Leaves of control groups that go from grain to grain.
#include "grainserver/launcher/start_grain.h"

#include "base/files.h"
#include "scratch_dir.h"
#include "support/catch.h"

using namespace dcs;
using namespace bench;
namespace files = dcs::files;

// A host whose control groups are files of a directory.
struct PaperGroups {
    ScratchDir d;
    std::string group = d.path + "/cg/dcs/dcs-1-2";
    starter::Cgroups groups;
    starter::Starter within{d.path, groups, ::getpid()};
    starter::StarterClient starter;
    PaperGroups() {
        file(d.path + "/proc/self/cgroup", "0::/dcs\n");
        file(d.path + "/proc/self/mountinfo", "31 23 0:28 / /cg rw shared:4 - cgroup2 cgroup2 rw,nsdelegate\n");
        file(d.path + "/cg/dcs/cgroup.controllers", "pids\n");
        file(d.path + "/cg/dcs/cgroup.subtree_control", "");
        file(group + "/cgroup.subtree_control", "");
        file(group + "/probe/cgroup.procs", "");
        starter.use(within);
        REQUIRE(groups.open("dcs-1-2", d.path).find("v2 pids") != std::string::npos);
    }
    static void file(const std::string &path, const std::string &text) {
        REQUIRE(make_directories(path.substr(0, path.rfind('/'))));
        put_file(path, text);
    }
    void leaf(const std::string &name) {
        for (const char *of : {"cgroup.procs", "cgroup.kill", "pids.max"}) file(group + "/" + name + "/" + of, "");
        file(group + "/" + name + "/pids.events", "max 0\n");
    }
};

TEST_CASE("a leaf with a process in it goes to no other grain") {
    PaperGroups p;
    p.leaf("a");
    p.leaf("b");
    launcher::Leaves leaves(p.groups, p.starter);
    files::Limits limits;
    limits.processes = 5;
    starter::Leaf a = leaves.take("a", limits);
    REQUIRE((a.there && a.processes && a.name == "a"));
    p.file(p.group + "/a/cgroup.procs", "17\n");
    REQUIRE_FALSE(leaves.give_back(a));
    REQUIRE(a.there);
    REQUIRE_FALSE(leaves.any_spare());
    starter::Leaf b = leaves.take("b", limits);
    REQUIRE(b.name == "b");
    REQUIRE(leaves.give_back(b));
    REQUIRE((!b.there && leaves.any_spare()));
    p.file(p.group + "/b/cgroup.procs", "18\n");  // in the meantime, by a process with the right to
    p.leaf("c");
    REQUIRE(leaves.take("c", limits).name == "c");
}

TEST_CASE("a spare leaf goes to a grain of the same limits, which answers for no other's refusals") {
    PaperGroups p;
    for (const char *name : {"a", "b", "c", "d"}) p.leaf(name);
    launcher::Leaves leaves(p.groups, p.starter);
    files::Limits five, six, memory;
    five.processes = memory.processes = 5;
    six.processes = 6;
    memory.memory_mb = 64;
    starter::Leaf a = leaves.take("a", five);
    REQUIRE(a.refused == 0);
    p.file(p.group + "/a/pids.events", "max 3\n");
    REQUIRE(starter::Cgroups::refused_in(a) == 3);
    REQUIRE(leaves.give_back(a));
    REQUIRE(leaves.take("b", six).name == "b");
    REQUIRE(leaves.take("c", memory).name == "c");
    starter::Leaf again = leaves.take("d", five);
    REQUIRE(again.name == "a");
    REQUIRE(again.refused == 3);
    again.sealed = true;                     // its limit is not what the next grain's would be
    REQUIRE_FALSE(leaves.give_back(again));  // a directory of files cannot be removed as a leaf can
    REQUIRE_FALSE(leaves.any_spare());
    REQUIRE(leaves.take("a", five).name != "a");
}
