// Limits of a grain, and the end of everything that it started: with control groups and without.
#include <sys/mman.h>

#include "grainserver/starter/cgroups.h"
#include "grainserver/starter/disk_use.h"
#include "launcher_bench.h"

using namespace bench;

namespace {
void ended_by(const files::ExitRecord &e, int signal, const std::string &words) {
    INFO(e.reason);
    REQUIRE(e.known);
    REQUIRE_FALSE(e.innocent);
    REQUIRE(e.limit_signal == signal);
    REQUIRE(e.reason.starts_with(words + "; "));  // and what to do
}
std::string unique(const Place &p) { return p.dir.path.substr(p.dir.path.rfind('/') + 1); }
}  // namespace

TEST_CASE("64 MB of memory are a limit, with a control group and without") {
    for (const bool groups : {true, false}) {
        Place p(groups);
        if (groups && !p.has_groups("memory")) continue;
        p.limits.memory_mb = 64;
        const std::string g = p.shell("(head -c 300000000 /dev/zero; exec sleep 60) | tail -n 1");
        REQUIRE(p.start(g).verb == files::Verb::started);
        ended_by(p.exit_of(g), SIGKILL, "the grain used more than its 64 MB of memory");
        const std::string modest = p.shell("head -c 3000000 /dev/zero | tail -n 1 | wc -c");
        REQUIRE(p.start(modest).verb == files::Verb::started);
        const files::ExitRecord e = p.exit_of(modest);
        REQUIRE(e.limit_signal == 0);
        REQUIRE(e.status == 0);
        REQUIRE(get_file(p.room(modest) + "/out.3") == "3000000\n");
    }
}

// A shell that does not look at the end of its pipe ends with 0 before the launcher looks at the group.
TEST_CASE("a grain of which the kernel killed a process for its memory has not succeeded") {
    Place p(true);
    if (!p.has_groups("memory")) return;
    p.limits.memory_mb = 64;
    const std::string g = p.shell("bytes=$(dd if=/dev/zero bs=300M count=1 | wc -c); echo $bytes; exit 0");
    REQUIRE(p.start(g).verb == files::Verb::started);
    ended_by(p.exit_of(g), SIGKILL, "the grain used more than its 64 MB of memory");
}

TEST_CASE("a fork bomb is a grain with too many processes, and nothing of it is left") {
    for (const bool groups : {true, false}) {
        Place p(groups);
        if (groups && !p.has_groups("pids")) continue;
        p.limits.processes = 60;
        const std::string mark = unique(p);
        // 255 shells and as many sleepers, each shell in a session of its own, deaf to TERM
        put_file(p.dir.path + "/bomb",
                 "#!/bin/sh\ntrap '' TERM\n[ $1 -gt 0 ] && { setsid $0 $(($1-1)) & setsid $0 "
                 "$(($1-1)) & }\nsleep 1000 &\nwait\nwait\nwait\n",
                 0755);
        const std::string g = p.make({p.dir.path + "/bomb", "7"}, "", {"PATH=/usr/bin:/bin", "BOMB=" + mark});
        REQUIRE(p.start(g).verb == files::Verb::started);
        ended_by(p.exit_of(g), SIGKILL, "the grain had more than its 60 processes");
        REQUIRE(marked("BOMB=" + mark) == 0);
    }
}

// Alone: what got away would hunt the tests beside it.
TEST_CASE("a process that flees by forking and exiting without end is caught", "[.alone]") {
    for (const bool groups : {true, false}) {
        Place p(groups);
        if (groups && !p.has_groups("v2")) continue;
        const std::string d = p.dir.path;
        // eight of them, no more modest than they must be, each time in a session of its own; the bounds are for us if
        // they get away
        put_file(d + "/rabbit",
                 "import os, time\nend = time.time() + 90\ntry:\n"
                 "    os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))\n"
                 "    os.setpriority(os.PRIO_PROCESS, 0, 0)\nexcept OSError: pass\n"
                 "for i in range(3):\n    os.fork()\nfor i in range(100000):\n"
                 "    if os.fork():\n        os._exit(0)\n    os.setsid()\n    if time.time() > end: break\n"
                 "    if i == 20: open('" +
                     d + "/runs', 'w')\nopen('" + d + "/away', 'w')\n");
        const std::string g = p.shell("env -i /usr/bin/python3 " + d + "/rabbit; sleep 60");
        REQUIRE(p.start(g).verb == files::Verb::started);
        REQUIRE(soon([&] { return file_exists(AT_FDCWD, d + "/runs"); }));
        p.client.send({files::Verb::kill, g});
        p.exit_of(g);
        REQUIRE(marked(d + "/rabbit") == 0);
        REQUIRE_FALSE(file_exists(AT_FDCWD, d + "/away"));
    }
}

TEST_CASE("a daemon without session, parent, environment, descriptors and ears dies with its grain, not with another") {
    for (const bool groups : {true, false}) {
        Place p(groups);
        if (groups && !p.has_groups("v2")) continue;
        const std::string d = p.dir.path;
        put_file(d + "/hidden",
                 "#!/bin/sh\nexec 0<&- 1>&- 2>&-\ntrap '' TERM HUP INT\necho $$ > " + d +
                     "/pid.$1\n"
                     "while :; do sleep 0.1; done\n",
                 0755);
        const std::string other = p.shell("(env -i setsid " + d + "/hidden other &); sleep 60");
        if (groups) {  // without them such a one lives until the last grain ends
            REQUIRE(p.start(other).verb == files::Verb::started);
            p.number_in(d + "/pid.other");
        }
        const std::string g = p.shell("(env -i setsid " + d + "/hidden own &); while ! test -s " + d +
                                      "/pid.own; do sleep 0.05; done; exit 3");
        REQUIRE(p.start(g).verb == files::Verb::started);
        const pid_t hidden = p.number_in(d + "/pid.own");
        REQUIRE(WEXITSTATUS(p.exit_of(g).status) == 3);
        REQUIRE(gone(hidden));
        if (!groups) continue;
        REQUIRE(alive(p.number_in(d + "/pid.other")));
        p.client.send({files::Verb::kill, other});
        p.exit_of(other);
        REQUIRE(gone(p.number_in(d + "/pid.other")));
    }
}

TEST_CASE("processor time is counted over all processes") {
    Place p(false);
    p.limits.cpu_s = 1;
    const std::string g = p.shell("sh -c 'echo $$ > " + p.dir.path + "/pid; while :; do :; done'; true");
    REQUIRE(p.start(g).verb == files::Verb::started);
    hurry(p.number_in(p.dir.path + "/pid"));
    ended_by(p.exit_of(g), SIGXCPU, "the grain used more than its 1 s of processor time");
}

TEST_CASE("a file that is too large ends the grain") {
    Place p;
    p.limits.file_mb = 1;
    const std::string g = p.make({"/usr/bin/head", "-c", "5000000", "/dev/zero"});
    REQUIRE(p.start(g).verb == files::Verb::started);
    ended_by(p.exit_of(g), SIGXFSZ, "the grain wrote a file of more than its 1 MB");
    const std::string fits = p.make({"/usr/bin/head", "-c", "1000000", "/dev/zero"});
    REQUIRE(p.start(fits).verb == files::Verb::started);
    REQUIRE(p.exit_of(fits).status == 0);
}

TEST_CASE("what a grain keeps in its directory is a limit, wherever it lies there") {
    Place p;
    p.limits.disk_mb = 5;
    const std::string g = p.shell(
        "mkdir -p a/b ../c; for f in a/1 a/b/2 ../c/3 4 5 6; do "
        "head -c 1500000 /dev/zero > $f; done; sleep 60");
    REQUIRE(p.start(g).verb == files::Verb::started);
    ended_by(p.exit_of(g), SIGXFSZ, "the grain kept more than its 5 MB in its directory");
    const std::string sparse = p.shell("truncate -s 100M big; head -c 1500000 /dev/zero > some; sleep 1");
    REQUIRE(p.start(sparse).verb == files::Verb::started);
    const files::ExitRecord e = p.exit_of(sparse);
    REQUIRE(e.limit_signal == 0);
    REQUIRE(e.status == 0);
}

TEST_CASE("directories that are too deep to be counted are a limit too") {
    // On a machine that stands still during one look, the next comes up to 50 times as long after it.
    Place p;
    p.limits.disk_mb = 5;
    const std::string g = p.shell(
        "for i in $(seq 70); do mkdir d; cd d; done; head -c 7000000 /dev/zero > deep; "
        "sleep 300");
    REQUIRE(p.start(g).verb == files::Verb::started);
    hurry(p.pid_of(g));
    ended_by(p.exit_of(g), SIGXFSZ,
             "the grain has directories more than 64 deep in its own, and what they hold cannot "
             "be counted for its limit of 5 MB");
}

TEST_CASE("files that have no name any more are a limit too") {
    Place p;
    p.limits.disk_mb = 5;
    // One process, which is the one that hurries; it waits at the pipe with the file open.
    const std::string g = p.shell("mkfifo pipe; exec 3>big; rm big; exec head -c 7000000 /dev/zero pipe >&3");
    REQUIRE(p.start(g).verb == files::Verb::started);
    hurry(p.pid_of(g));
    ended_by(p.exit_of(g), SIGXFSZ, "the grain kept more than its 5 MB in its directory");
    // Those that are only mapped, too; each once.
    ScratchDir d;
    put_file(d.path + "/mapped", std::string(1 << 20, 'x'));
    const Result<Fd> room = open_directory(AT_FDCWD, d.path);
    REQUIRE(room);
    const auto all = [&] { return starter::DiskUse::nameless(room->get(), {::getpid(), ::getpid()}, 1000).bytes; };
    CHECK_FALSE(starter::DiskUse::nameless(room->get(), {::getpid()}, 1000).too_many);
    CHECK(starter::DiskUse::nameless(room->get(), std::vector<pid_t>(1000, ::getpid()), 1000).too_many);
    const std::int64_t before = all();  // this program itself, when it has just been built again
    const auto now = [&] { return all() - before; };
    void *at = nullptr;
    {
        const Fd file(::open((d.path + "/mapped").c_str(), O_RDONLY | O_CLOEXEC));
        REQUIRE(::fsync(file.get()) == 0);  // while it is written to the disk, the kernel may say that it has no blocks
        at = ::mmap(nullptr, 1 << 20, PROT_READ, MAP_PRIVATE, file.get(), 0);
        REQUIRE(at != MAP_FAILED);
        CHECK(now() == 0);
        REQUIRE(::unlink((d.path + "/mapped").c_str()) == 0);
        CHECK(now() == 1 << 20);
    }
    CHECK(now() == (::geteuid() == 0 ? 1 << 20 : 0));
    REQUIRE(::munmap(at, 1 << 20) == 0);
    CHECK(now() == 0);
}

TEST_CASE("disk use is counted in portions, and follows no link") {
    ScratchDir d, other;
    REQUIRE(make_directories(d.path + "/a/b"));
    for (int i = 0; i < 50; ++i) put_file(d.path + "/a/b/" + std::to_string(i), std::string(4096, 'x'));
    put_file(other.path + "/large", std::string(1 << 20, 'x'));
    REQUIRE(::symlink(other.path.c_str(), (d.path + "/away").c_str()) == 0);
    const Result<Fd> room = open_directory(AT_FDCWD, d.path);
    REQUIRE(room);
    starter::DiskUse use;
    std::int64_t sum = 0;
    int looks = 0;
    do {
        const std::int64_t now = use.look(room->get(), 10);
        REQUIRE(now >= sum);
        sum = now;
        ++looks;
    } while (!use.resting());
    REQUIRE(looks > 5);
    REQUIRE(sum >= 50 * 4096);
    REQUIRE(sum < 1 << 20);
    REQUIRE(use.look(room->get(), 1) < sum);  // from the beginning again
}

TEST_CASE("no leaf of a control group is left, not by ended grains and not by a dead launcher") {
    Place p;
    if (!p.has_groups("v")) return;
    struct stat st {};
    REQUIRE(::stat(p.dir.path.c_str(), &st) == 0);
    starter::Cgroups groups;
    groups.open("dcs-" + std::to_string(st.st_dev) + "-" + std::to_string(st.st_ino));
    const std::string done = p.make({"/bin/true"}), g = p.shell("env -i setsid sleep 60 & sleep 60");
    REQUIRE(p.start(done).verb == files::Verb::started);
    p.exit_of(done);
    REQUIRE(soon([&] { return groups.leaves().empty(); }));
    REQUIRE(p.start(g).verb == files::Verb::started);
    REQUIRE(soon([&] { return groups.members(g).size() == 3; }));
    const std::vector<pid_t> members = groups.members(g);
    ::kill(p.launchers.back(), SIGKILL);
    REQUIRE(soon([&] {
        p.client.read();
        return p.client.broken();
    }));
    // a leaf of a grain that no process knows, as if killed between the fork and the pid file
    ::unlink((p.path(g) + "/pid").c_str());
    p.connect();
    for (const pid_t pid : members) REQUIRE(soon([&] { return gone(pid); }));
    REQUIRE(soon([&] { return groups.leaves().empty(); }));
    put_file(p.path(g) + "/exit", "");
}

TEST_CASE("version 2 of control groups, as its files are") {
    ScratchDir d;
    const auto make = [&](const std::string &path, const std::string &text) {
        REQUIRE(make_directories(d.path + path.substr(0, path.rfind('/'))));
        put_file(d.path + path, text);
    };
    make("/proc/self/cgroup", "12:cpuset:/\n0::/system.slice/dcs.service/dcs-daemons\n");
    make("/proc/self/mountinfo",
         "30 1 0:1 / /proc rw - proc proc rw\n"
         "31 23 0:28 / /cg rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n");
    const std::string own = "/cg/system.slice/dcs.service", group = own + "/dcs-1-2", leaf = group + "/grain";
    make(own + "/cgroup.controllers", "cpuset cpu memory pids\n");
    make(own + "/cgroup.subtree_control", "");
    make(group + "/cgroup.subtree_control", "");
    make(group + "/probe/cgroup.procs", "");
    for (const char *name :
         {"memory.max", "memory.swap.max", "memory.oom.group", "pids.max", "cpu.idle", "cgroup.kill"})
        make(leaf + "/" + name, "");
    make(leaf + "/cgroup.procs", "17\n4711\n");
    make(leaf + "/pids.events", "max 0\n");
    starter::Cgroups groups;
    const std::string found = groups.open("dcs-1-2", d.path);
    INFO(found);
    REQUIRE(found.find("v2 memory pids cpu kill in " + d.path + group) != std::string::npos);
    REQUIRE(get_file(d.path + own + "/cgroup.subtree_control") == "+cpu +memory +pids");
    REQUIRE(get_file(d.path + group + "/cgroup.subtree_control") == "+cpu +memory +pids");
    files::Limits limits;
    limits.memory_mb = 64;
    limits.processes = 100;
    const starter::Leaf made = groups.make("grain", limits);
    REQUIRE((made.there && made.memory && made.processes && made.joins.size() == 1));
    const auto value = [&](const std::string &name) { return get_file(d.path + leaf + "/" + name); };
    REQUIRE(value("memory.max") == "67108864");
    REQUIRE(value("memory.swap.max") == "0");
    REQUIRE(value("memory.oom.group") == "1");
    REQUIRE(value("pids.max") == "100");
    REQUIRE(value("cpu.idle") == "1");
    starter::Cgroups equals;
    equals.open("dcs-1-2", d.path, false);
    REQUIRE(equals.make("grain", limits).there);
    REQUIRE(value("cpu.idle") == "0");
    REQUIRE(groups.members("grain") == std::vector<pid_t>{17, 4711});
    REQUIRE_FALSE(groups.ran_out_of_memory("grain"));
    make(leaf + "/memory.events", "low 0\nhigh 0\nmax 7\noom 1\noom_kill 2\noom_group_kill 1\n");
    REQUIRE(groups.ran_out_of_memory("grain"));
    REQUIRE(starter::Cgroups::refused_in(made) == 0);
    make(leaf + "/pids.events", "max 3\n");
    REQUIRE(starter::Cgroups::refused_in(made) == 3);
    groups.seal("grain");
    REQUIRE(value("cgroup.kill") == "1");
    REQUIRE(value("pids.max").substr(0, 1) == "0");
    make("/proc/self/cgroup", "0::/../outside\n");
    REQUIRE(groups.open("dcs-1-2", d.path).find("cannot be used") != std::string::npos);
}

// Without control groups: where one names every process, that alone decides.
TEST_CASE("a process is its account's grain's, whatever its environment says") {
    if (::geteuid() != 0) {
        WARN("SKIPPED: only root has accounts for grains");
        return;
    }
    Place p(false);
    p.limits.memory_mb = 64;
    p.account.change = p.account.made_up = true;
    p.account.uid = p.account.gid = 61001;
    const std::string victim = p.shell("sleep 600");
    REQUIRE(p.start(victim).verb == files::Verb::started);
    p.account.uid = p.account.gid = 61002;
    const std::string room = p.room(victim), mark = unique(p);
    char *real = ::realpath(room.c_str(), nullptr);
    const std::string attacker = p.shell("(setsid env DCS_GRAIN_DIR=" + std::string(real) + " MARK=" + mark +
                                         " /bin/sh -c '(head -c 300000000 /dev/zero; exec sleep 600) | tail -n 1' &); "
                                         "exec sleep 600");
    ::free(real);
    REQUIRE(p.start(attacker).verb == files::Verb::started);
    ended_by(p.exit_of(attacker), SIGKILL, "the grain used more than its 64 MB of memory");
    REQUIRE(marked("MARK=" + mark) == 0);
    REQUIRE(alive(p.pid_of(victim)));
    p.client.send({files::Verb::kill, victim});
    REQUIRE(p.exit_of(victim).limit_signal == 0);
}

TEST_CASE("processes that no grain of their account claims are ended before a grain is, and with the last of them") {
    Place p(false);
    p.limits.memory_mb = 64;
    const std::string mark = unique(p), d = p.dir.path;
    const std::string one = p.shell("sleep 600"),
                      two = p.shell("(setsid env -i MARK=" + mark +
                                    " /bin/sh -c '(head -c 300000000 /dev/zero; exec sleep 600) | tail -n 1' &); "
                                    "(setsid env -i QUIET=" +
                                    mark + " sleep 600 &); exec sleep 600");
    REQUIRE(p.start(one).verb == files::Verb::started);
    REQUIRE(p.start(two).verb == files::Verb::started);
    REQUIRE(soon([&] { return get_file(d + "/launcher.log").find("unattributed processes") != std::string::npos; }));
    REQUIRE(soon([&] { return marked("MARK=" + mark) == 0; }));
    REQUIRE(alive(p.pid_of(one)));
    REQUIRE(alive(p.pid_of(two)));
    p.client.send({files::Verb::kill, two});
    p.exit_of(two);
    p.client.send({files::Verb::kill, one});
    p.exit_of(one);
    REQUIRE(marked("QUIET=" + mark) == 0);
}

TEST_CASE("what such processes keep open without a name counts for the grains of their account") {
    Place p(false);
    p.limits.disk_mb = 5;
    const std::string mark = unique(p), d = p.dir.path;
    const std::string one = p.shell("exec sleep 600"),
                      two = p.shell("mkfifo pipe; (setsid env -i MARK=" + mark +
                                    " /bin/sh -c 'exec 3>big; rm big; echo $$ > " + d +
                                    "/pid; exec head -c 7000000 /dev/zero pipe >&3' &); exec sleep 600");
    REQUIRE(p.start(one).verb == files::Verb::started);
    REQUIRE(p.start(two).verb == files::Verb::started);
    hurry(p.pid_of(two));
    hurry(p.number_in(d + "/pid"));
    REQUIRE(soon([&] { return marked("MARK=" + mark) == 0; }));
    REQUIRE(get_file(d + "/launcher.log").find("unattributed processes") != std::string::npos);
    REQUIRE(alive(p.pid_of(one)));
    REQUIRE(alive(p.pid_of(two)));
    for (const std::string &grain : {one, two}) {
        p.client.send({files::Verb::kill, grain});
        p.exit_of(grain);
    }
}
