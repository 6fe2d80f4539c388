// Slots outlive a process that took them for a grain, and are freed with its last process.
#include "launcher_bench.h"

using namespace bench;

namespace {
// Leaves its parents, its session and every descriptor, but keeps the cookie.
std::string daemon_that_closes(const std::string &d) {
    return "(setsid sh -c 'for i in 0 1 2 3 4 5 6 7 8 9; do eval \"exec $i<&-\"; done; echo $$ > " + d +
           "/pid; while :; do sleep 0.1; done' &); while ! test -s " + d + "/pid; do sleep 0.05; done; sleep 60";
}
}  // namespace

TEST_CASE("launcher killed: the slot stays taken until the grain's last process is gone, though no process comes") {
    for (const bool groups : {true, false}) {
        Place p(groups);
        const std::string d = p.dir.path, slots = d + "/slots";
        const std::string g = p.shell(daemon_that_closes(d));
        REQUIRE(p.start(g, 1).verb == files::Verb::started);
        const pid_t hidden = p.number_in(d + "/pid"), first = p.pid_of(g), keeper = p.keeper();
        REQUIRE(keeper != 0);
        ::kill(p.launchers.back(), SIGKILL);
        REQUIRE(soon([&] {
            p.client.read();
            return p.client.broken();
        }));
        REQUIRE(slot_held(slots, 0));
        ::kill(-first, SIGKILL);
        REQUIRE(soon([&] { return gone(first); }));
        nap(300);  // a few of its looks
        REQUIRE(alive(hidden));
        REQUIRE(slot_held(slots, 0));
        ::kill(hidden, SIGKILL);
        REQUIRE(soon([&] { return !slot_held(slots, 0); }));
        REQUIRE(soon([&] { return gone(keeper); }));
        p.connect();  // a new launcher ends nothing and starts the next
        const std::string next = p.make({"/bin/true"});
        REQUIRE(p.start(next, 1).verb == files::Verb::started);
        REQUIRE(p.exit_of(next).status == 0);
    }
}

TEST_CASE("keeper killed: another holds the same slots, and the launcher's death after it frees none") {
    Place p;
    const std::string d = p.dir.path;
    const std::string g = p.make({"/bin/sleep", "60"}), done = p.make({"/bin/true"});
    REQUIRE(p.start(g, 2).verb == files::Verb::started);
    const pid_t first = p.keeper();
    ::kill(first, SIGKILL);
    REQUIRE(soon([&] {
        const pid_t now = p.keeper();
        return now != 0 && now != first;
    }));
    REQUIRE(p.start(done, 2).verb == files::Verb::started);
    REQUIRE(p.exit_of(done).status == 0);
    REQUIRE_FALSE(slot_held(d + "/slots", 1));  // at once
    ::kill(p.keeper(), SIGSTOP);                // one that does not answer counts as dead
    const std::string more = p.make({"/bin/true"});
    REQUIRE(p.start(more, 2).verb == files::Verb::started);
    REQUIRE(p.exit_of(more).status == 0);
    REQUIRE(soon([&] { return !slot_held(d + "/slots", 1); }));
    const pid_t grain = p.pid_of(g);
    ::kill(p.launchers.back(), SIGKILL);
    REQUIRE(soon([&] {
        p.client.read();
        return p.client.broken();
    }));
    REQUIRE(slot_held(d + "/slots", 0));
    REQUIRE(alive(grain));
    p.connect();  // buries it
    REQUIRE(gone(grain));
    REQUIRE(soon([&] { return !slot_held(d + "/slots", 0); }));
}

TEST_CASE("two servers of one host share their slots") {
    ScratchDir shared;
    Place a(true, shared.path + "/slots"), b(false, shared.path + "/slots");
    const std::string g = a.make({"/bin/sleep", "60"}), h = b.make({"/bin/true"});
    REQUIRE(a.start(g, 1).verb == files::Verb::started);
    const files::LauncherCall no = b.start(h, 1);
    REQUIRE(no.verb == files::Verb::failed);
    REQUIRE(no.again);
    a.client.send({files::Verb::kill, g});
    a.exit_of(g);
    REQUIRE(b.start(h, 1).verb == files::Verb::started);
    REQUIRE(b.exit_of(h).status == 0);
}
