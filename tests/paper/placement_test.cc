// What the paper's sections 3.2 and 5.4 say about who runs where: a test for each sentence, driving the
// scheduler's core. Host names stand for themselves; all of one class unless a test says otherwise.
#include "unit/scheduler_core/pool.h"

using namespace dcs;
using namespace dcs::core;

namespace {

// Two programs: ann's session 1 is older than bob's.
struct Two {
    Pool pool;
    Program ann, bob;
    explicit Two(int hosts = 1, int slots = 1) : pool(hosts, slots) {
        ann = pool.begin("ann", "a");
        bob = pool.begin("bob", "b");
        pool.open(ann, 1);
        pool.open(bob, 1);
    }
    HostConfig &host(int n) { return pool.hosts[static_cast<std::size_t>(n) - 1]; }
    SubmitGrain grain(int number) { return Pool::grain(1, number); }
};

bool has(const Lines &lines, const std::string &line) { return std::count(lines.begin(), lines.end(), line) > 0; }

}  // namespace

// ---- 3.2 ----------------------------------------------------------------------------------
TEST_CASE("3.2: only grains of active sessions execute or reside in the ready queues") {
    Two t;
    t.pool.gexec(t.ann, 1, 0);
    t.pool.gexec(t.ann, 1, 1);
    CHECK(has(t.pool.close(t.ann, 1), "h1: withdraw ann/1:0 inc 1 discard because the session was closed"));
    CHECK(t.pool.state.waiting.empty());
    CHECK(t.pool.state.running[0].empty());
    CHECK(t.pool.call_in("h1").empty());
    CHECK(t.pool.status("ann/1:0") == "ready");  // as the backing store has it
}

TEST_CASE("3.2: any grain of an earlier session has priority over all grains of later ones") {
    Two t;
    t.pool.gexec(t.bob, 1, 0);  // runs
    t.pool.gexec(t.bob, 1, 1);
    SubmitGrain urgent = t.grain(2);
    urgent.demands.urgent = true;
    t.pool.call(t.bob, urgent);
    t.pool.gexec(t.ann, 1, 0);
    t.pool.gexec(t.ann, 1, 1);
    CHECK(t.pool.end("h1", "bob/1:0").back() == "h1: launch ann/1:0 inc 1 next 1");
    CHECK(t.pool.end("h1", "ann/1:0").back() == "h1: launch ann/1:1 inc 1 next 1");
    CHECK(t.pool.end("h1", "ann/1:1").back() == "h1: launch bob/1:2 inc 1 next 1");
}

TEST_CASE("3.2: hosts of the least valued type are considered first, then the next higher") {
    Pool pool;
    for (const auto &[name, type] : {std::pair{"cray", 0x8u}, {"sun", 0x4u}, {"vax", 0x1u}, {"hp", 0x2u}})
        pool.add_host(name, type);
    pool.table();
    for (const HostConfig &c : pool.hosts) pool.first_call(c.name);
    const Program ann = pool.begin("ann", "a");
    pool.open(ann, 1);
    CHECK(pool.gexec(ann, 1, 0, 0xd).back() == "vax: launch ann/1:0 inc 1 next 1");
    CHECK(pool.gexec(ann, 1, 1, 0xd).back() == "sun: launch ann/1:1 inc 1 next 1");
    CHECK(pool.gexec(ann, 1, 2, 0xd).back() == "cray: launch ann/1:2 inc 1 next 1");
    CHECK(pool.gexec(ann, 1, 3, 0xd).back() == "ann: done");  // hp is not acceptable
}

TEST_CASE("3.2: a grain migrates within the machines of its host_class, when its host becomes busy or fails") {
    Pool pool;
    pool.add_host("h1", 1);
    pool.add_host("other", 4);
    pool.add_host("h2", 2);
    pool.table();
    for (const HostConfig &c : pool.hosts) pool.first_call(c.name);
    const Program ann = pool.begin("ann", "a");
    pool.open(ann, 1);
    pool.gexec(ann, 1, 0, 3);
    pool.checkpoint("h1", "ann/1:0", "out", "state");
    CHECK(pool.end("h1", "ann/1:0", 0, 15, true).back() == "h2: launch ann/1:0 inc 2 checkpoint 5 next 2");
    pool.now = pool.now + seconds(50);
    pool.call_in("h1");
    CHECK(has(pool.wait(seconds(11)), "h1: launch ann/1:0 inc 3 checkpoint 5 next 2"));  // h2 failed
}

TEST_CASE("3.2: a grain is not sent where the free memory is too low for its thrash parameter") {
    Two t;
    t.pool.call_in("h1", 4095);
    SubmitGrain g = t.grain(0);
    g.demands.thrash = 8;  // half megabytes
    CHECK(t.pool.call(t.ann, g) == Lines{"ann: done"});
    CHECK(t.pool.call_in("h1", 4096) == Lines{"h1: launch ann/1:0 inc 1 next 1"});
}

TEST_CASE("3.2: if thrash is zero, memory load is not considered to be a problem") {
    Two t;
    t.pool.call_in("h1", 0);
    CHECK(t.pool.gexec(t.ann, 1, 0).back() == "h1: launch ann/1:0 inc 1 next 1");
}

TEST_CASE("3.2: a grain that thrashes is withdrawn and returned to the scheduler") {
    Two t;
    t.pool.gexec(t.ann, 1, 0);
    t.pool.gexec(t.ann, 1, 1);
    wire::GrainReport r = t.pool.end_report("ann/1:0", 0, 15, true);
    r.reason = "the host pages";
    t.pool.send("h1", r);
    CHECK(t.pool.status("ann/1:0") == "ready");
    CHECK(t.pool.at("ann/1:0").course->failures == 0);
    CHECK(t.pool.at("ann/1:0").course->moves->back().detail == "the host pages");
    CHECK(t.pool.status("ann/1:1") == "running");  // not the same one at once
}

TEST_CASE("3.2: urgent places a grain at the beginning of the queue, if no suitable host is available") {
    Two t;
    for (int i = 0; i < 3; ++i) t.pool.gexec(t.ann, 1, i);
    SubmitGrain g = t.grain(3);
    g.demands.urgent = true;
    t.pool.call(t.ann, g);
    CHECK(t.pool.queue("ann/1") == std::vector<GrainNumber>{3, 1, 2});
}

TEST_CASE("3.2: migrating grains are placed at the beginning of the queue too") {
    Two t;
    for (int i = 0; i < 3; ++i) t.pool.gexec(t.ann, 1, i);
    t.pool.wait(seconds(61));
    CHECK(t.pool.queue("ann/1") == std::vector<GrainNumber>{0, 1, 2});
}

TEST_CASE("3.2: notice is the number of minutes that a grain is warned before checkpointing") {
    Two t;
    SubmitGrain g = t.grain(0);
    g.demands.notice = 3;
    CHECK(t.pool.call(t.ann, g).back() == "h1: launch ann/1:0 inc 1 next 1 notice 3");
}

TEST_CASE("3.2: a killed grain is removed from its host, from the queue and from normal recovery") {
    Two t;
    t.pool.gexec(t.ann, 1, 0);
    t.pool.gexec(t.ann, 1, 1);
    CHECK(has(t.pool.gkill(t.ann, 1, 0), "h1: withdraw ann/1:0 inc 1 discard because killed by its control program"));
    t.pool.gkill(t.ann, 1, 1);
    CHECK(t.pool.state.waiting.empty());
    t.pool.close(t.ann, 1);
    t.pool.open(t.ann, 1, wire::OpenMode::reopen);
    CHECK(t.pool.call_in("h1").empty());
    CHECK(t.pool.status("ann/1:0") == "killed");
}

TEST_CASE("3.2: unfinished grains are not reported unless they failed a fixed number of times") {
    Two t(2);
    t.pool.gexec(t.ann, 1, 0);
    t.pool.end("h1", "ann/1:0", 0, 11);
    t.pool.end("h1", "ann/1:0", 0, 11);
    CHECK(t.pool.gwait(t.ann, 1, 0).at(0).find("NOTHING_YET") != std::string::npos);
    t.pool.end("h2", "ann/1:0", 0, 11);
    CHECK(t.pool.gwait(t.ann, 1, 0) == Lines{"ann: result ann/1:0 completed 1 sent 1 signal 11 out 6"});
}

// ---- 5.4 ----------------------------------------------------------------------------------
TEST_CASE("5.4: a server's free slots are filled by session seniority, one after the other") {
    Two t(0);
    t.pool.add_host("h1", 1, 3);
    t.pool.table();
    for (int i = 0; i < 2; ++i) t.pool.gexec(t.bob, 1, i);
    for (int i = 0; i < 2; ++i) t.pool.gexec(t.ann, 1, i);
    const Lines lines = t.pool.first_call("h1");
    CHECK(Lines(lines.begin() + 1, lines.end()) == Lines{"h1: launch ann/1:0 inc 1 next 1",
                                                         "h1: launch ann/1:1 inc 1 next 1",
                                                         "h1: launch bob/1:0 inc 1 next 1"});
}

TEST_CASE("5.4: a ready grain must be compatible with the server's host class") {
    Two t;
    t.pool.gexec(t.ann, 1, 0, 2);
    t.pool.gexec(t.ann, 1, 1, 2);
    CHECK(t.pool.gexec(t.bob, 1, 0, 3).back() == "h1: launch bob/1:0 inc 1 next 1");
}

TEST_CASE("5.4: queues of users who are not permitted to use the server are skipped") {
    Two t;
    t.host(1).users = {"bob"};
    t.pool.table();
    t.pool.gexec(t.ann, 1, 0);
    CHECK(t.pool.gexec(t.bob, 1, 0).back() == "h1: launch bob/1:0 inc 1 next 1");
    t.pool.end("h1", "bob/1:0");
    CHECK(t.pool.call_in("h1").empty());
}

TEST_CASE("5.4: if an attempt to start fails, the search goes on until all ready grains were checked") {
    Two t;
    t.pool.gexec(t.ann, 1, 0);
    t.pool.gexec(t.ann, 1, 1);
    t.pool.gexec(t.bob, 1, 0);
    CHECK(t.pool.launched("h1", "ann/1:0", Code::not_found) == Lines{"h1: launch ann/1:1 inc 1 next 1"});
    CHECK(t.pool.launched("h1", "ann/1:1", Code::not_found) == Lines{"h1: launch bob/1:0 inc 1 next 1"});
    CHECK(t.pool.launched("h1", "bob/1:0", Code::not_found).empty());
}

TEST_CASE("5.4: a missing binary keeps the grain from trying that host again until its bit is cleared") {
    Two t;
    t.pool.gexec(t.ann, 1, 0);
    t.pool.launched("h1", "ann/1:0", Code::not_found);
    CHECK(t.pool.at("ann/1:0").course->nogo.get() == std::vector<HostId>{HostId{0}});
    t.pool.now = t.pool.now + seconds(25);
    CHECK(t.pool.boundary("h1").empty());
    wire::SetHost c;
    c.host = "h1";
    c.clear_nogo = true;
    c.user = "ann";
    c.session = 1;
    c.grain = 0;
    CHECK(t.pool.set(t.pool.stranger("root", true), c).back() == "h1: launch ann/1:0 inc 2 next 1");
}

TEST_CASE("5.4: a new request whose start fails is tried on the next host") {
    Two t(3);
    t.host(2).users = {"bob"};
    t.pool.table();
    CHECK(t.pool.gexec(t.ann, 1, 0).back() == "h1: launch ann/1:0 inc 1 next 1");
    CHECK(t.pool.launched("h1", "ann/1:0", Code::not_found) == Lines{"h3: launch ann/1:0 inc 2 next 1"});
    CHECK(t.pool.launched("h3", "ann/1:0", Code::not_found).empty());
    CHECK(t.pool.at("ann/1:0").course->nogo.get() == std::vector<HostId>{HostId{0}, HostId{2}});
}

TEST_CASE("5.4: with no empty slot the grain goes to the end of its session's queue, an urgent one to the front") {
    Two t;
    for (int i = 0; i < 3; ++i) t.pool.gexec(t.ann, 1, i);
    SubmitGrain g = t.grain(9);
    g.demands.urgent = true;
    t.pool.call(t.ann, g);
    t.pool.gexec(t.ann, 1, 3);
    CHECK(t.pool.queue("ann/1") == std::vector<GrainNumber>{9, 1, 2, 3});
}

TEST_CASE("5.4: lower priority grains that run are not affected by a new submission") {
    Two t;
    t.pool.gexec(t.bob, 1, 0);
    CHECK(t.pool.gexec(t.ann, 1, 0) == Lines{"ann: done"});
    CHECK(t.pool.status("bob/1:0") == "running");
}

TEST_CASE("5.4: lower priority grains are usurped only at a time slice boundary") {
    Two t;
    t.pool.gexec(t.bob, 1, 0);
    t.pool.gexec(t.ann, 1, 0);
    CHECK(t.pool.call_in("h1").empty());  // an early one, because of some event
    CHECK(t.pool.boundary("h1") == Lines{"h1: launch ann/1:0 inc 1 next 1 tentative"});
}

TEST_CASE("5.4: free slots are filled first, then higher seniority usurps what executes of lower") {
    Two t(1, 2);
    t.pool.gexec(t.bob, 1, 0);
    t.pool.launched("h1", "bob/1:0");
    t.pool.gexec(t.ann, 1, 0);
    t.pool.launched("h1", "ann/1:0", Code::limit);  // its slot is free, it is held back
    t.pool.now = t.pool.now + seconds(6);
    t.pool.hosts[0].slots = 2;
    const Lines lines = t.pool.boundary("h1");
    CHECK(lines == Lines{"h1: launch ann/1:0 inc 2 next 1"});  // not tentative: no grain has to leave
    t.pool.gexec(t.ann, 1, 1);
    CHECK(t.pool.boundary("h1") == Lines{"h1: launch ann/1:1 inc 1 next 1 tentative"});
}

TEST_CASE("5.4: neither the same session nor a younger one usurps") {
    Two t;
    t.pool.gexec(t.ann, 1, 0);
    t.pool.gexec(t.ann, 1, 1);
    t.pool.gexec(t.bob, 1, 0);
    CHECK(t.pool.boundary("h1").empty());
}

TEST_CASE("5.4: a tentative startup shows that the new grain can run before the other is removed") {
    Two t;
    t.pool.gexec(t.bob, 1, 0);
    t.pool.gexec(t.ann, 1, 0);
    t.pool.boundary("h1");
    CHECK(t.pool.status("bob/1:0") == "running");
    SECTION("it can") {
        CHECK(t.pool.staged("h1", "ann/1:0") == Lines{"h1: withdraw bob/1:0 inc 1 because session ann/1 is older"});
        CHECK(t.pool.end("h1", "bob/1:0", 0, 15, true) == Lines{"h1: ack bob/1:0 inc 1 last 1 ended taken"});
        CHECK(t.pool.launched("h1", "ann/1:0").empty());
        CHECK(t.pool.queue("bob/1") == std::vector<GrainNumber>{0});
    }
    SECTION("it cannot") {
        CHECK(t.pool.launched("h1", "ann/1:0", Code::not_found).empty());
        CHECK(t.pool.status("bob/1:0") == "running");
        CHECK(t.pool.boundary("h1").empty());
    }
}

TEST_CASE("5.4: grains of busy or failed hosts go to the front, if there is no alternate immediately") {
    Two t;
    for (int i = 0; i < 3; ++i) t.pool.gexec(t.ann, 1, i);
    t.pool.end("h1", "ann/1:0", 0, 15, true);  // given back; 1 runs
    CHECK(t.pool.queue("ann/1") == std::vector<GrainNumber>{0, 2});
    t.pool.wait(seconds(61));
    CHECK(t.pool.queue("ann/1") == std::vector<GrainNumber>{1, 0, 2});
}

TEST_CASE("5.4: a grain that fails three times is killed") {
    Two t(4);
    t.pool.gexec(t.ann, 1, 0);
    for (int i = 1; i <= 3; ++i) {
        CHECK(t.pool.status("ann/1:0") == "running");
        t.pool.end(t.pool.state.host(t.pool.at("ann/1:0").lessee)->config->name, "ann/1:0", 1);
        CHECK(t.pool.at("ann/1:0").course->failures == i);
    }
    CHECK(t.pool.status("ann/1:0") == "finished");
    CHECK(t.pool.at("ann/1:0").as<core::Finished>().exit_code == 1);
}
