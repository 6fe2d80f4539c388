// Leaves of control groups: which grain has which, and that none stays.
#include "grainserver/launcher/cgroups.h"
#include "grainserver/launcher/leaves.h"
#include "launcher_bench.h"

using namespace bench;

TEST_CASE("no leaf of a control group is left, not by ended grains and not by a dead launcher") {
    Place p;
    if (!p.has_groups("v")) return;
    struct stat st{};
    REQUIRE(::stat(p.dir.path.c_str(), &st) == 0);
    launcher::Cgroups groups;
    groups.open("dcs-" + std::to_string(st.st_dev) + "-" + std::to_string(st.st_ino));
    const std::string done = p.make({"/bin/true"}), g = p.shell("env -i setsid sleep 60 & sleep 60");
    REQUIRE(p.start(done).verb == files::Verb::started);
    p.exit_of(done);
    REQUIRE(soon([&] { return groups.leaves().empty(); }));
    REQUIRE(p.start(g).verb == files::Verb::started);
    REQUIRE(soon([&] { return groups.members(g).size() == 3; }));
    const std::vector<pid_t> members = groups.members(g);
    ::kill(p.launchers.back(), SIGKILL);
    REQUIRE(soon([&] { p.client.read(); return p.client.broken(); }));
    // a leaf of a grain that nobody knows, as if killed between the fork and the pid file
    ::unlink((p.path(g) + "/pid").c_str());
    p.connect();
    for (const pid_t pid : members) REQUIRE(soon([&] { return gone(pid); }));
    REQUIRE(soon([&] { return groups.leaves().empty(); }));
    put_file(p.path(g) + "/exit", "");
}

// A host whose control groups are files of a directory.
struct PaperGroups {
    ScratchDir d;
    std::string group = d.path + "/cg/dcs/dcs-1-2";
    launcher::Cgroups groups;
    PaperGroups() {
        file(d.path + "/proc/self/cgroup", "0::/dcs\n");
        file(d.path + "/proc/self/mountinfo", "31 23 0:28 / /cg rw shared:4 - cgroup2 cgroup2 rw,nsdelegate\n");
        file(d.path + "/cg/dcs/cgroup.controllers", "pids\n");
        file(d.path + "/cg/dcs/cgroup.subtree_control", "");
        file(group + "/cgroup.subtree_control", "");
        file(group + "/probe/cgroup.procs", "");
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
    launcher::Leaves leaves(p.groups);
    files::Limits limits;
    limits.processes = 5;
    launcher::Leaf a = leaves.take("a", limits);
    REQUIRE((a.there && a.processes && a.name == "a"));
    p.file(p.group + "/a/cgroup.procs", "17\n");
    REQUIRE_FALSE(leaves.give_back(a));
    REQUIRE(a.there);
    REQUIRE_FALSE(leaves.any_spare());
    launcher::Leaf b = leaves.take("b", limits);
    REQUIRE(b.name == "b");
    REQUIRE(leaves.give_back(b));
    REQUIRE((!b.there && leaves.any_spare()));
    p.file(p.group + "/b/cgroup.procs", "18\n");  // in the meantime, by somebody with the right to
    p.leaf("c");
    REQUIRE(leaves.take("c", limits).name == "c");
}

TEST_CASE("a spare leaf goes to a grain of the same limits, which answers for no other's refusals") {
    PaperGroups p;
    for (const char *name : {"a", "b", "c", "d"}) p.leaf(name);
    launcher::Leaves leaves(p.groups);
    files::Limits five, six, memory;
    five.processes = memory.processes = 5;
    six.processes = 6;
    memory.memory_mb = 64;
    launcher::Leaf a = leaves.take("a", five);
    REQUIRE(a.refused == 0);
    p.file(p.group + "/a/pids.events", "max 3\n");
    REQUIRE(launcher::Cgroups::refused_in(a) == 3);
    REQUIRE(leaves.give_back(a));
    REQUIRE(leaves.take("b", six).name == "b");
    REQUIRE(leaves.take("c", memory).name == "c");
    launcher::Leaf again = leaves.take("d", five);
    REQUIRE(again.name == "a");
    REQUIRE(again.refused == 3);
    again.sealed = true;  // its limit is not what the next grain's would be
    REQUIRE_FALSE(leaves.give_back(again));  // a directory of files cannot be removed as a leaf can
    REQUIRE_FALSE(leaves.any_spare());
    REQUIRE(leaves.take("a", five).name != "a");
}

TEST_CASE("version 2 of control groups, as its files are") {
    ScratchDir d;
    const auto make = [&](const std::string &path, const std::string &text) {
        REQUIRE(make_directories(d.path + path.substr(0, path.rfind('/'))));
        put_file(d.path + path, text);
    };
    make("/proc/self/cgroup", "12:cpuset:/\n0::/system.slice/dcs.service/dcs-daemons\n");
    make("/proc/self/mountinfo", "30 1 0:1 / /proc rw - proc proc rw\n"
                                 "31 23 0:28 / /cg rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n");
    const std::string own = "/cg/system.slice/dcs.service", group = own + "/dcs-1-2", leaf = group + "/grain";
    make(own + "/cgroup.controllers", "cpuset cpu memory pids\n");
    make(own + "/cgroup.subtree_control", "");
    make(group + "/cgroup.subtree_control", "");
    make(group + "/probe/cgroup.procs", "");
    for (const char *name : {"memory.max", "memory.swap.max", "memory.oom.group", "pids.max", "cpu.idle",
                             "cgroup.kill"})
        make(leaf + "/" + name, "");
    make(leaf + "/cgroup.procs", "17\n4711\n");
    make(leaf + "/pids.events", "max 0\n");
    launcher::Cgroups groups;
    const std::string found = groups.open("dcs-1-2", d.path);
    INFO(found);
    REQUIRE(found.find("v2 memory pids cpu kill in " + d.path + group) != std::string::npos);
    REQUIRE(get_file(d.path + own + "/cgroup.subtree_control") == "+cpu +memory +pids");
    REQUIRE(get_file(d.path + group + "/cgroup.subtree_control") == "+cpu +memory +pids");
    files::Limits limits;
    limits.memory_mb = 64;
    limits.processes = 100;
    const launcher::Leaf made = groups.make("grain", limits);
    REQUIRE((made.there && made.memory && made.processes && made.joins.size() == 1));
    const auto value = [&](const std::string &name) { return get_file(d.path + leaf + "/" + name); };
    REQUIRE(value("memory.max") == "67108864");
    REQUIRE(value("memory.swap.max") == "0");
    REQUIRE(value("memory.oom.group") == "1");
    REQUIRE(value("pids.max") == "100");
    REQUIRE(value("cpu.idle") == "1");
    REQUIRE(groups.members("grain") == std::vector<pid_t>{17, 4711});
    REQUIRE_FALSE(groups.ran_out_of_memory("grain"));
    make(leaf + "/memory.events", "low 0\nhigh 0\nmax 7\noom 1\noom_kill 2\noom_group_kill 1\n");
    REQUIRE(groups.ran_out_of_memory("grain"));
    REQUIRE(launcher::Cgroups::refused_in(made) == 0);
    make(leaf + "/pids.events", "max 3\n");
    REQUIRE(launcher::Cgroups::refused_in(made) == 3);
    groups.seal("grain");
    REQUIRE(value("cgroup.kill") == "1");
    REQUIRE(value("pids.max").substr(0, 1) == "0");
    make("/proc/self/cgroup", "0::/../outside\n");
    REQUIRE(groups.open("dcs-1-2", d.path).find("cannot be used") != std::string::npos);
}
