#include "locks/kill_carefully.h"

#include <cerrno>
#include <functional>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "locks/run_tree.h"
#include "scratch.h"
#include "stepped_world.h"
#include "victims.h"

using namespace dcs;
using namespace dcs::locks;
using scratch::hour;
using scratch::ms;
using victims::Counter;
using victims::owner;

namespace {

constexpr KillGrace short_grace{50 * ms, 50 * ms, hour};  // who may be killed is waited for
const std::uint64_t cookie = 0x1234567800000000 + static_cast<std::uint64_t>(::getpid());

struct OtherWorld final : World {
    Moment now() const override { return this_world().now(); }
    OtherWorld() {
        boot = this_world().boot;
        pid_namespace = this_world().pid_namespace;
        host = this_world().host;
    }
};

void signal_nobody(const World &world, const Owner &victim, const Counter &innocent, Killed expected) {
    const KillReport report = kill_carefully(world, victim, short_grace);
    CHECK(report.result == expected);
    CHECK(report.signalled == 0);
    CHECK((report.text.empty() == (expected == Killed::gone)));
    CHECK(innocent.signals() == 0);
    CHECK(innocent.lives());
}

}  // namespace

TEST_CASE("P4 an empty owner is never signalled") {
    Counter sibling;
    Owner nobody = owner(ProcessIdentity{});
    signal_nobody(this_world(), nobody, sibling, Killed::gone);
    nobody.group = ::getpgrp();  // damaged: numbers without the process that they belong to
    nobody.session = ::getsid(0);
    signal_nobody(this_world(), nobody, sibling, Killed::gone);
}

TEST_CASE("P4 pid 1, the requester and its parent are never signalled") {
    Counter sibling;
    signal_nobody(this_world(), owner(1), sibling, Killed::own_ancestor);
    signal_nobody(this_world(), owner(::getpid()), sibling, Killed::own_ancestor);
    signal_nobody(this_world(), owner(::getppid()), sibling, Killed::own_ancestor);
}

TEST_CASE("P5 S6 a pid that is another process's by now gets no signal") {
    ProcessIdentity dead;
    {
        Counter victim;
        dead = *identify(victim.pid());
    }
    Counter innocent(0, dead.pid);
    if (!innocent.made()) {
        WARN("SKIPPED: this kernel or user cannot choose pids: " << errno);
        return;
    }
    REQUIRE(innocent.pid() == dead.pid);
    signal_nobody(this_world(), owner(dead), innocent, Killed::gone);
    signal_nobody(this_world(), owner(dead, cookie), innocent, Killed::gone);
}

TEST_CASE("P5 the number of a dead leader's group may be another process's group by now") {
    ProcessIdentity dead;
    {
        Counter victim;
        dead = *identify(victim.pid());
    }
    Counter innocent(0, dead.pid, true);
    if (!innocent.made()) {
        WARN("SKIPPED: this kernel or user cannot choose pids: " << errno);
        return;
    }
    Owner victim = owner(dead);
    victim.group = victim.session = dead.pid;
    signal_nobody(this_world(), victim, innocent, Killed::gone);
}

TEST_CASE("P6 P7 a record of another boot, host or pid namespace never leads to a signal") {
    Counter innocent;
    const Owner running = owner(innocent.pid());
    OtherWorld boot, host, space;
    boot.boot[3] ^= 1;
    host.host += "x";
    ++space.pid_namespace;
    signal_nobody(boot, running, innocent, Killed::elsewhere);
    signal_nobody(host, running, innocent, Killed::elsewhere);
    signal_nobody(space, running, innocent, Killed::elsewhere);
}

TEST_CASE("P8 the whole tree ends, and no other process") {
    const scratch::Directory dir;
    const victims::Broom broom{cookie};
    Counter sibling, elsewhere(0, 0, true);
    const pid_t leader = victims::shell(victims::crowd_script(dir / "pids"), cookie);
    const auto crowd = victims::crowd_in(dir / "pids");
    REQUIRE(crowd.size() == victims::crowd_size);
    const KillReport report = kill_carefully(this_world(), owner(leader, cookie), short_grace);
    CHECK(report.result == Killed::gone);
    CHECK(report.signalled >= static_cast<int>(victims::crowd_size));
    CHECK(victims::survivors(crowd) == 0);
    CHECK(victims::carriers(cookie) == 0);
    CHECK(sibling.signals() + elsewhere.signals() == 0);
    CHECK((sibling.lives() && elsewhere.lives()));
    ::waitpid(leader, nullptr, 0);
}

TEST_CASE("P8 P4 a tree of more processes than the requester has descriptors") {
    constexpr int many = 60;
    const victims::Broom broom{cookie};
    const scratch::Directory dir;
    const std::string script =
        "for i in $(seq " + std::to_string(many) + "); do sleep 1000 & done; echo $$ >> " + (dir / "pids") + "; wait";
    // What a requester with so few descriptors says of the tree of `victim`.
    const auto ended_with = [](rlim_t descriptors, const std::function<Owner()> &victim, Killed expected) {
        const pid_t requester = ::fork();
        if (requester == 0) {
            const Owner owner = victim();
            const rlimit few = {descriptors, descriptors};
            if (::setrlimit(RLIMIT_NOFILE, &few) != 0) ::_exit(1);
            const KillReport report = kill_carefully(this_world(), owner, short_grace);
            const bool told = expected != Killed::unkillable || report.text.ends_with(": Too many open files");
            const bool careful = (report.signalled > 0) == (expected == Killed::gone);
            ::_exit(report.result == expected && told && careful ? 17 : 18);
        }
        int status = 0;
        ::waitpid(requester, &status, 0);
        return scratch::exit_code(status) == 17;
    };
    for (const bool by_cookie : {true, false}) {
        const pid_t leader = victims::shell(script, cookie, true);
        victims::until([&] { return victims::pids_in(dir / "pids").size() == (by_cookie ? 1 : 2); });
        Owner run = owner(leader, by_cookie ? cookie : 0);
        if (!by_cookie) run.group = run.session = leader;
        victims::until([] { return victims::carriers(cookie) == many + 1; });  // each has become a sleep
        CHECK(ended_with(
            3, [&] { return run; }, Killed::unkillable));
        CHECK(victims::carriers(cookie) == many + 1);
        CHECK(ended_with(
            24, [&] { return run; }, Killed::gone));
        CHECK(victims::carriers(cookie) == 0);
        ::waitpid(leader, nullptr, 0);
    }
    const auto surrounded = [&] {  // the requester's parent is what it would end
        const pid_t requester = ::fork();
        if (requester == 0) return owner(::getppid());
        int status = 0;
        ::waitpid(requester, &status, 0);
        ::_exit(scratch::exit_code(status));
    };
    const auto crowded = [&] {
        const pid_t parent = ::getpid();
        for (int i = 0; i < many; ++i)
            if (::fork() == 0) {
                ::prctl(PR_SET_PDEATHSIG, SIGKILL);
                while (::getppid() == parent) ::pause();  // it may have ended before
                ::_exit(0);
            }
        return surrounded();
    };
    CHECK(ended_with(24, crowded, Killed::own_ancestor));
}

TEST_CASE("P8 a tree whose leader is dead is found by its cookie") {
    const scratch::Directory dir;
    const victims::Broom broom{cookie};
    const pid_t leader = victims::shell(victims::crowd_script(dir / "pids"), cookie);
    const auto crowd = victims::crowd_in(dir / "pids");
    const Owner dead = owner(leader, cookie);
    scratch::end(leader);
    CHECK(victims::survivors(crowd) == static_cast<int>(victims::crowd_size) - 1);
    CHECK(kill_carefully(this_world(), dead, short_grace).result == Killed::gone);
    CHECK(victims::survivors(crowd) == 0);
}

TEST_CASE("P8 without cookie descendants, group and session are found while the leader lives") {
    const scratch::Directory dir;
    const victims::Broom broom{cookie};
    const pid_t leader = victims::shell("F=" + (dir / "all") + "; export F; echo $$ >> $F" + R"(
        sleep 1000 & echo $! >> $F
        (sleep 1000 & echo $! >> $F)
        setsid sh -c 'echo $$ >> $F; exec sleep 1000' &
        sh -c 'trap "" INT TERM; echo $$ >> $F; exec sleep 1000' &
        sleep 1000 & p=$!; kill -STOP $p; echo $p >> $F
        exec sleep 1000)",
                                        0, true);
    const auto crowd = victims::crowd_in(dir / "all");
    Owner holder = owner(leader);
    holder.group = holder.session = leader;
    CHECK(kill_carefully(this_world(), holder, short_grace).result == Killed::gone);
    CHECK(victims::survivors(crowd) == 0);
    for (const auto &process : crowd) ::kill(process.pid, SIGKILL);
    ::waitpid(leader, nullptr, 0);
}

TEST_CASE("P8 a member that appears between the signals is found again") {
    const scratch::Directory dir;
    const victims::Broom broom{cookie};
    const std::string file = dir / "pids";
    const pid_t leader =
        victims::shell("trap 'setsid -f sh -c \"echo \\$\\$ >> " + file +
                           "; exec sleep 1000\"; exit 0' INT; echo $$ >> " + file + "; while :; do sleep 0.01; done",
                       cookie);
    victims::until([&] { return victims::pids_in(file).size() == 1; });
    const KillReport report = kill_carefully(this_world(), owner(leader, cookie), {hour, hour, hour});
    CHECK(report.result == Killed::gone);
    CHECK(victims::carriers(cookie) == 0);
    ::waitpid(leader, nullptr, 0);
}

TEST_CASE("P9 what runs inside the expired run does not end it") {
    const scratch::Directory dir;
    const victims::Broom broom{cookie};
    const int result = [&] {
        const pid_t outer = ::fork();
        if (outer == 0) {
            const Owner self = owner(::getpid());
            const pid_t inner = ::fork();
            if (inner == 0) {
                const KillReport report = kill_carefully(this_world(), self, short_grace);
                ::_exit(report.result == Killed::own_ancestor && report.signalled == 0 ? 17 : 18);
            }
            int status = 0;
            ::waitpid(inner, &status, 0);
            ::_exit(scratch::exit_code(status));
        }
        int status = 0;
        ::waitpid(outer, &status, 0);
        return scratch::exit_code(status);
    }();
    CHECK(result == 17);
}

TEST_CASE("P10 a stopped holder handles the first signal, once it runs again") {
    Counter victim(SIGINT);
    ::kill(victim.pid(), SIGSTOP);
    CHECK(kill_carefully(this_world(), owner(victim.pid()), {200 * ms, 50 * ms, hour}).result == Killed::gone);
    CHECK(victim.got(SIGINT) == 1);
    CHECK(victim.got(SIGTERM) == 0);
}

TEST_CASE("P11 a holder that cannot die is reported, and not waited for longer than the graces") {
    const std::string freezer = "/sys/fs/cgroup/freezer/dcs-test-" + std::to_string(::getpid());
    if (::mkdir(freezer.c_str(), 0755) != 0) {
        WARN("SKIPPED: no freezer of version 1, where the frozen do not die: " << errno);
        return;
    }
    const auto write = [&](const std::string &name, const std::string &text) {
        std::ofstream(freezer + "/" + name) << text;
    };
    {
        Counter victim, sibling;
        const Owner frozen = owner(victim.pid());
        write("cgroup.procs", std::to_string(victim.pid()));
        write("freezer.state", "FROZEN");
        const KillReport report = kill_carefully(this_world(), frozen, {20 * ms, 20 * ms, 20 * ms});
        CHECK(report.result == Killed::unkillable);
        CHECK(report.text.find(std::to_string(victim.pid())) != std::string::npos);
        CHECK(report.text.find("state") != std::string::npos);
        CHECK(sibling.signals() == 0);
        write("freezer.state", "THAWED");
        CHECK(kill_carefully(this_world(), frozen, {20 * ms, 20 * ms, hour}).result == Killed::gone);
    }
    CHECK(::rmdir(freezer.c_str()) == 0);
}

TEST_CASE("P12 one who ends on the first signal gets no other, and is not waited for") {
    for (const int number : {SIGINT, SIGTERM}) {
        Counter victim(number);
        const KillGrace grace = number == SIGINT ? KillGrace{hour, hour, hour} : KillGrace{50 * ms, hour, hour};
        CHECK(kill_carefully(this_world(), owner(victim.pid()), grace).result == Killed::gone);
        CHECK(victim.got(SIGINT) == 1);
        CHECK(victim.got(SIGTERM) == (number == SIGTERM ? 1 : 0));
    }
}

TEST_CASE("P37 another process's holder is not signalled, and that is said") {
    if (::getuid() != 0) {
        WARN("SKIPPED: only root can become another user");
        return;
    }
    Counter victim;
    const Owner root = owner(victim.pid());
    const pid_t other = ::fork();
    if (other == 0) {
        if (::setresgid(65534, 65534, 65534) != 0 || ::setresuid(65534, 65534, 65534) != 0) ::_exit(1);
        const KillReport report = kill_carefully(this_world(), root, short_grace);
        ::_exit(report.result == Killed::not_permitted && report.signalled == 0 && !report.text.empty() ? 17 : 18);
    }
    int status = 0;
    ::waitpid(other, &status, 0);
    CHECK(scratch::exit_code(status) == 17);
    CHECK(victim.signals() == 0);
    CHECK(victim.lives());
}

TEST_CASE("P37 another process's process in a tree of one's own is told, and gets no signal") {
    if (::getuid() != 0) {
        WARN("SKIPPED: only root can become another user");
        return;
    }
    const scratch::Directory dir;
    const victims::Broom broom{cookie};
    // Its child stays root's; it becomes another process.
    const pid_t leader = victims::shell(
        "sleep 1000 & echo $! >> " + (dir / "pids") + "; exec setpriv --reuid=65534 --clear-groups sleep 1000", cookie);
    const auto roots = [&] { return victims::pids_in(dir / "pids"); };
    struct stat about = {};
    victims::until([&] {
        return !roots().empty() && ::stat(("/proc/" + std::to_string(leader)).c_str(), &about) == 0 &&
               about.st_uid == 65534;
    });
    int said[2];
    REQUIRE(::pipe(said) == 0);
    const pid_t other = ::fork();
    if (other == 0) {
        if (::setresuid(65534, 65534, 65534) != 0) ::_exit(1);
        const KillReport report = kill_carefully(this_world(), owner(leader, cookie), short_grace);
        const ssize_t n = ::write(said[1], report.text.data(), report.text.size());
        ::_exit(report.result == Killed::not_permitted && n > 0 ? 17 : 18);
    }
    ::close(said[1]);
    char text[256] = "";
    CHECK(::read(said[0], text, sizeof text - 1) > 0);
    ::close(said[0]);
    int status = 0;
    ::waitpid(other, &status, 0);
    CHECK(scratch::exit_code(status) == 17);
    REQUIRE(roots().size() == 1);
    CHECK(std::string(text).starts_with("process " + std::to_string(roots()[0]) + " ("));
    CHECK(std::string(text).ends_with(") belongs to another user"));
    CHECK(::kill(roots()[0], 0) == 0);
    ::waitpid(leader, &status, 0);
    CHECK(WIFSIGNALED(status));  // which was its own
}

TEST_CASE("A control group finds those who hide from everything else") {
    const std::string leaf = make_leaf(cookie);
    if (leaf.empty()) {
        WARN("SKIPPED: this host lets us make no control group");
        return;
    }
    CHECK(is_leaf(leaf, cookie));
    CHECK_FALSE(is_leaf(leaf, cookie + 1));  // no record names another run's, or a process's
    CHECK_FALSE(is_leaf(leaf.substr(0, leaf.rfind('/')), cookie));
    const scratch::Directory dir;
    const victims::Broom broom{cookie};
    const pid_t leader = victims::shell("echo 0 > " + leaf + "/cgroup.procs; (setsid env -i sleep 1000 & echo $! >> " +
                                            (dir / "pids") + "); exec sleep 1000",
                                        cookie);
    victims::until([&] { return leaf_members(leaf).size() == 2 && victims::pids_in(dir / "pids").size() == 1; });
    const auto hidden = identify(victims::pids_in(dir / "pids")[0]);
    REQUIRE(hidden);
    Owner dead = owner(leader, cookie);
    dead.cgroup = leaf;
    scratch::end(leader);
    CHECK(victims::survivors({*hidden}) == 1);
    CHECK(kill_carefully(this_world(), dead, short_grace).result == Killed::gone);
    CHECK(victims::survivors({*hidden}) == 0);
    CHECK_FALSE(is_leaf(leaf, cookie));  // it is gone, too
    ::kill(hidden->pid, SIGKILL);
}
