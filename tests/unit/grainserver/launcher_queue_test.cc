// The launcher's queue: the slot of a grain that has ended goes to the next one.
#include <algorithm>

#include "launcher_bench.h"

using namespace bench;
using files::Verb;

namespace {
// Answers and events of a launcher that several grains have been queued at.
struct Heard {
    Place &p;
    std::vector<files::LauncherCall> calls;

    std::size_t count(Verb verb, const std::string &dir) {
        for (files::LauncherCall &call : p.client.read()) calls.push_back(std::move(call));
        return static_cast<std::size_t>(std::count_if(calls.begin(), calls.end(), [&](const files::LauncherCall &call) {
            return call.verb == verb && call.dir == dir;
        }));
    }
    bool has(Verb verb, const std::string &dir) { return count(verb, dir) > 0; }
    bool ended(const std::string &dir) { return has(Verb::exited, dir) || has(Verb::left, dir); }
    void wait_end(const std::string &dir) {
        INFO(dir);
        REQUIRE(soon([&] { return ended(dir); }));
    }
    void wait(Verb verb, const std::string &dir) {
        INFO(files::format({verb, dir}));
        REQUIRE(soon([&] { return has(verb, dir); }));
    }
};
// Writes its name to `journal`, then runs until `gate` exists.
std::string gated(Place &p, const std::string &name) {
    return p.shell("echo " + name + " >>" + p.dir.path + "/journal; while ! test -e " + p.dir.path + "/gate-" + name +
                   "; do sleep 0.05; done");
}
void open_gate(Place &p, const std::string &name) { put_file(p.dir.path + "/gate-" + name, ""); }
bool started(Place &p, const std::string &grain) { return file_exists(AT_FDCWD, p.path(grain) + "/pid"); }
}  // namespace

TEST_CASE("the slot of a grain that has ended goes to the next one in the queue") {
    Place p;
    Heard heard{p, {}};
    const std::string a = gated(p, "a"), b = gated(p, "b"), c = gated(p, "c");
    const std::string wrong = p.make({p.dir.path + "/missing"});
    p.client.send({Verb::queue, a, 1});
    heard.wait(Verb::started, a);
    p.client.send({Verb::queue, wrong, 1});
    p.client.send({Verb::queue, b, 1});
    p.client.send({Verb::queue, b, 1});  // again: nothing more than the number of slots
    p.client.send({Verb::first, c, 1});
    REQUIRE(p.start(p.make({"/bin/true"}), 1).again);
    REQUIRE_FALSE(started(p, c));
    for (const std::string name : {"a", "c"}) open_gate(p, name);
    heard.wait(Verb::started, b);
    REQUIRE(heard.ended(a));
    REQUIRE(heard.has(Verb::started, c));
    REQUIRE(heard.has(Verb::failed, wrong));
    REQUIRE(slot_held(p.dir.path + "/slots", 0));
    REQUIRE_FALSE(slot_held(p.dir.path + "/slots", 1));
    locks::Place slots;
    slots.path = p.dir.path + "/slots/slots";
    const auto holders = locks::slot_holders(slots);
    REQUIRE((holders && !holders->empty() && holders->at(0).note == "grain " + b));
    REQUIRE(holders->at(0).owner.process.pid == p.pid_of(b));
    REQUIRE(soon([&] { return get_file(p.dir.path + "/journal") == "a\nc\nb\n"; }));
    p.client.send({Verb::queue, b, 1});
    heard.wait(Verb::have, b);
    open_gate(p, "b");
    heard.wait_end(b);
    REQUIRE(heard.count(Verb::started, b) == 1);
    REQUIRE(soon([&] { return !slot_held(p.dir.path + "/slots", 0); }));
}

TEST_CASE("a queue gets more slots at once, and fewer as grains end") {
    Place p;
    Heard heard{p, {}};
    std::vector<std::string> grains;
    for (const std::string name : {"a", "b", "c", "d"}) grains.push_back(gated(p, name));
    for (const std::string &grain : grains) p.client.send({Verb::queue, grain, 1});
    heard.wait(Verb::started, grains[0]);
    p.client.send({Verb::queue, grains[1], 3});
    heard.wait(Verb::started, grains[2]);
    REQUIRE(heard.has(Verb::started, grains[1]));
    p.client.send({Verb::queue, grains[3], 2});
    open_gate(p, "a");
    heard.wait_end(grains[0]);
    p.client.send({Verb::recall, grains[1]});
    heard.wait(Verb::have, grains[1]);
    REQUIRE_FALSE(started(p, grains[3]));  // two others run
    open_gate(p, "b");
    heard.wait(Verb::started, grains[3]);
    for (const std::string name : {"c", "d"}) open_gate(p, name);
    heard.wait_end(grains[3]);
}

TEST_CASE("a grain that waits is recalled and not started, one that runs or has run is said to be there") {
    Place p;
    Heard heard{p, {}};
    const std::string a = gated(p, "a"), b = gated(p, "b"), c = gated(p, "c");
    for (const std::string &grain : {a, b, c}) p.client.send({Verb::queue, grain, 1});
    heard.wait(Verb::started, a);
    p.client.send({Verb::recall, b});
    heard.wait(Verb::recalled, b);
    p.client.send({Verb::recall, a});
    heard.wait(Verb::have, a);
    open_gate(p, "a");
    heard.wait(Verb::started, c);
    p.client.send({Verb::recall, a});
    REQUIRE(soon([&] { return heard.count(Verb::have, a) == 2; }));
    open_gate(p, "c");
    heard.wait_end(c);
    REQUIRE_FALSE(started(p, b));
    REQUIRE(get_file(p.dir.path + "/journal") == "a\nc\n");
}

TEST_CASE("what a server has queued is not started after its end") {
    Place p;
    Heard heard{p, {}};
    const std::string a = gated(p, "a"), b = gated(p, "b");
    for (const std::string &grain : {a, b}) p.client.send({Verb::queue, grain, 1});
    heard.wait(Verb::started, a);
    p.connect();  // as another server would
    open_gate(p, "a");
    REQUIRE(p.exit_of(a).status == 0);
    const std::string last = p.make({"/bin/true"});
    REQUIRE(p.start(last, 1).verb == Verb::started);  // the slot is free
    p.exit_of(last);
    REQUIRE_FALSE(started(p, b));
}

TEST_CASE("a launcher that is stopped starts none of its queue") {
    Place p;
    Heard heard{p, {}};
    const std::string a = gated(p, "a"), b = gated(p, "b");
    for (const std::string &grain : {a, b}) p.client.send({Verb::queue, grain, 1});
    heard.wait(Verb::started, a);
    ::kill(p.launchers.back(), SIGTERM);
    heard.wait(Verb::failed, b);
    heard.wait_end(a);
    REQUIRE_FALSE(started(p, b));
}

TEST_CASE("the slot keeper holds a slot that was handed on as long as the second grain runs") {
    Place p;
    Heard heard{p, {}};
    const std::string a = gated(p, "a"), b = gated(p, "b");
    for (const std::string &grain : {a, b}) p.client.send({Verb::queue, grain, 1});
    open_gate(p, "a");
    heard.wait(Verb::started, b);
    const pid_t first = p.pid_of(b), keeper = p.keeper();
    REQUIRE(keeper > 0);
    ::kill(p.launchers.back(), SIGKILL);
    REQUIRE(soon([&] { return ::waitpid(p.launchers.back(), nullptr, WNOHANG) != 0; }));
    nap(300);  // the keeper has looked
    REQUIRE(alive(first));
    REQUIRE(slot_held(p.dir.path + "/slots", 0));
    ::kill(first, SIGKILL);
    REQUIRE(soon([&] { return !slot_held(p.dir.path + "/slots", 0); }));
}

TEST_CASE("that no process of a grain is left is said only when it is certain") {
    Place p(false);
    Heard heard{p, {}};
    const std::string file = p.dir.path + "/pid", b = gated(p, "b");
    const std::string a = p.shell("(env -i A=1 setsid /bin/sh -c 'echo $$ >" + file + "; exec sleep 60' &); " +
                                  "while ! test -s " + file + "; do sleep 0.05; done");
    for (const std::string &grain : {b, a}) p.client.send({Verb::queue, grain, 2});
    REQUIRE(soon([&] { return heard.ended(a); }));
    REQUIRE(heard.has(Verb::exited, a));  // what it left may be the other's
    REQUIRE(alive(p.number_in(file)));
    open_gate(p, "b");
    heard.wait_end(b);
    REQUIRE(gone(p.number_in(file)));
}

TEST_CASE("a launcher that ends starts nothing that is queued together with QUIT") {
    Place p;
    Heard heard{p, {}};
    const std::string first = p.make({"/bin/true"}), late = p.make({"/bin/sleep", "60"});
    p.client.send({Verb::list});
    heard.wait(Verb::end, "");
    p.client.send({Verb::queue, first, 1});
    heard.wait_end(first);
    server::LauncherClient &client = p.client;  // which sends both in one packet
    client.send({Verb::quit});
    client.send({Verb::queue, late, 1});
    REQUIRE(soon([&] {
        p.client.read();
        return p.client.broken();
    }));
    REQUIRE_FALSE(started(p, late));
}
