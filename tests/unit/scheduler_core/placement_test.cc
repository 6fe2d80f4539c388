// Who runs where.
#include "pool.h"
#include "scheduler/core/placement.h"
#include "wire/archives.h"
#include "support/about.h"

using namespace dcs;
using namespace dcs::core;

namespace {
std::int64_t total(const Grain &g) { return g.course->past->user_us + g.course->current.user_us; }
}  // namespace

TEST_CASE("host classes are tried from the lowest bit up") {
    Pool pool;
    pool.add_host("big", 4);
    pool.add_host("mid", 2);
    pool.add_host("both", 5);
    pool.add_host("small", 1);
    pool.table();
    for (const char *h : {"big", "mid", "both", "small"}) pool.first_call(h);
    const Program find = pool.begin("ann", "find");
    pool.open(find, 1);
    CHECK(pool.gexec(find, 1, 0, 6) == Lines{"ann: done", "mid: launch ann/1:0 inc 1 next 1"});
    CHECK(pool.gexec(find, 1, 1, 6) == Lines{"ann: done", "big: launch ann/1:1 inc 1 next 1"});
    // of one class, the first in the table; 0 is any class
    CHECK(pool.gexec(find, 1, 2, 0) == Lines{"ann: done", "both: launch ann/1:2 inc 1 next 1"});
    CHECK(pool.gexec(find, 1, 3, 2) == Lines{"ann: done"});
    CHECK(pool.gexec(find, 1, 4, 1) == Lines{"ann: done", "small: launch ann/1:4 inc 1 next 1"});
    CHECK(pool.end("big", "ann/1:1") == Lines{"big: ack ann/1:1 inc 1 last 1 ended taken"});
    CHECK(pool.end("mid", "ann/1:0") ==
          Lines{"mid: ack ann/1:0 inc 1 last 1 ended taken", "mid: launch ann/1:3 inc 1 next 1"});
}

TEST_CASE("an older session's grains go first, everywhere") {
    Pool pool(0);
    pool.add_host("h1", 1, 3);
    pool.table();
    const Program a = pool.begin("ann", "a"), b = pool.begin("bob", "b");
    pool.open(a, 5);
    pool.open(b, 1);
    pool.gexec(b, 1, 0);
    pool.gexec(b, 1, 1);
    pool.gexec(a, 5, 0);
    pool.gexec(a, 5, 1);
    CHECK(pool.first_call("h1") == Lines{"h1: configure interval 10000ms slots 3", "h1: launch ann/5:0 inc 1 next 1",
                                         "h1: launch ann/5:1 inc 1 next 1", "h1: launch bob/1:0 inc 1 next 1"});
}

TEST_CASE("a new submission never overtakes a ready grain that could use the slot") {
    Pool pool(1);
    const Program find = pool.begin("ann", "find");
    pool.open(find, 1);
    pool.gexec(find, 1, 0);
    pool.launched("h1", "ann/1:0", Code::limit);  // the slot is free, the grain is held back
    CHECK(pool.status("ann/1:0") == "ready");
    pool.now = pool.now + seconds(6);  // not held back any more
    CHECK(pool.gexec(find, 1, 1) == Lines{"ann: done", "h1: launch ann/1:0 inc 2 next 1"});
    CHECK(pool.status("ann/1:1") == "ready");
}

TEST_CASE("users, classes and memory decide who may run on a host") {
    Pool pool;
    pool.add_host("private", 1).users = {"bob", "carl"};
    pool.add_host("lean", 1);
    pool.table();
    pool.first_call("private");
    pool.first_call("lean");
    const Program find = pool.begin("ann", "find");
    pool.open(find, 1);
    SubmitGrain big = Pool::grain(1, 0);
    big.demands.thrash = 100;                           // half megabytes
    CHECK(pool.call(find, big) == Lines{"ann: done"});  // no party's free memory is known yet
    CHECK(pool.call_in("lean", 51199).empty());
    CHECK(pool.call_in("private", 1 << 20).empty());
    CHECK(pool.call_in("lean", 51200) == Lines{"lean: launch ann/1:0 inc 1 next 1"});
    CHECK(pool.state.host(pool.id("lean"))->free_memory_kb == 0);
    // what needs little passes by what needs much
    pool.end("lean", "ann/1:0");
    big.grain = 1;
    pool.call(find, big);
    CHECK(pool.gexec(find, 1, 2) == Lines{"ann: done", "lean: launch ann/1:2 inc 1 next 1"});
}

TEST_CASE("no grain goes to a host of an older release that cannot be told what it demands") {
    Pool pool(1);
    pool.forms["h1"] = wire::positional_form - 1;  // than which no demand is older
    pool.first_call("h1");
    const Program find = pool.begin("ann", "find");
    pool.open(find, 1);
    CHECK(pool.gexec(find, 1, 0) == Lines{"ann: done"});
    CHECK(pool.call_in("h1").empty());
    CHECK(pool.boundary("h1").empty());
    CHECK(pool.status("ann/1:0") == "ready");
    const std::string old =
        "host h1 speaks protocol form 7, which cannot carry the grain's demands: the grain needs "
        "a host that speaks form 8";
    CHECK(pool.explain("ann/1:0").summary == about("no configured host run Hosts reason 1 too_old " + old));
    CHECK(pool.gwait(find, 1, 0, true) ==
          Lines{"ann: error CANNOT_RUN: no host can run the remaining grains of session ann/1; for grain 0: 1 host "
                "configured, 1 of an older release; " +
                old});
    // the other hosts are not hindered
    pool.add_host("h2");
    pool.table();
    CHECK(pool.gwait(find, 1, 0, true).empty());
    CHECK(pool.explain("ann/1:0").summary == about("waits host 1 too_old 1 never_called " + old));
    CHECK(pool.first_call("h2").back() == "h2: launch ann/1:0 inc 1 next 1");
    // what runs on a host stays there when its server is replaced by an older one
    pool.forms["h2"] = 7;
    CHECK(pool.first_call("h2", {{"ann/1:0", 1}}) == Lines{"close h2", "h2: configure interval 10000ms slots 1"});
    CHECK(pool.status("ann/1:0") == "running");
    CHECK(pool.gexec(find, 1, 1) == Lines{"ann: done"});
    const auto note = [&](std::size_t host) {
        return pool.answer<wire::QueryReply>(find, wire::Query{wire::QueryType::hosts}).hosts[host].note;
    };
    CHECK(note(0) == about("server older release upgrade"));
    CHECK(note(1) == about("server older release form 7 upgrade"));
    // and an upgrade is all that it takes
    pool.forms.clear();
    CHECK(pool.first_call("h1").back() == "h1: launch ann/1:1 inc 1 next 1");
    CHECK(note(0).empty());
}

TEST_CASE("what a host of an older release cannot be told is said by its name") {
    Pool pool(1);
    CHECK(too_old(*pool.state.host(pool.id("h1")), wire::Needed{11, "licences"}) ==
          about("host h1 speaks protocol form " + std::to_string(wire::newest_form) +
                " cannot carry licences grain needs host speaks form 11"));
}

TEST_CASE("a missing program makes the host nogo and the search goes on") {
    Pool pool(2);
    const Program find = pool.begin("ann", "find");
    pool.open(find, 1);
    pool.gexec(find, 1, 0);
    CHECK(pool.launched("h1", "ann/1:0", Code::not_found) == Lines{"h2: launch ann/1:0 inc 2 next 1"});
    CHECK(pool.at("ann/1:0").course->nogo.get() == std::vector<HostId>{HostId{0}});
    CHECK(pool.call_in("h1").empty());
    pool.gwait(find, 1, 0, true);
    CHECK(pool.launched("h2", "ann/1:0", Code::not_found) ==
          Lines{"ann: error CANNOT_RUN: no host can run the remaining grains of session ann/1; for grain 0: 2 hosts "
                "configured, 2 could not start it; on h1: because; on h2: because"});
    CHECK(pool.at("ann/1:0").course->failures == 0);
    CHECK(pool.session("ann/1").waiters.empty());
    // waiting again is allowed, and a new host cures it
    CHECK(pool.gwait(find, 1, 0, true).at(0).find("CANNOT_RUN") != std::string::npos);
    pool.add_host("h3");
    pool.table();
    CHECK(pool.gwait(find, 1, 0, true).empty());
    CHECK(pool.first_call("h3") == Lines{"h3: configure interval 10000ms slots 1", "h3: launch ann/1:0 inc 3 next 1"});
}

TEST_CASE("a host in trouble does not get the grain again before its next call-in") {
    Pool pool(1);
    const Program find = pool.begin("ann", "find");
    pool.open(find, 1);
    pool.gexec(find, 1, 0);
    CHECK(pool.launched("h1", "ann/1:0", Code::limit).empty());
    CHECK(pool.at("ann/1:0").course->nogo->empty());
    CHECK(pool.at("ann/1:0").course->failures == 0);
    CHECK(pool.call_in("h1").empty());  // an early one, of the same second
    CHECK(pool.gexec(find, 1, 1) == Lines{"ann: done", "h1: launch ann/1:1 inc 1 next 1"});
    pool.end("h1", "ann/1:1");
    pool.now = pool.now + seconds(10);
    CHECK(pool.call_in("h1") == Lines{"h1: launch ann/1:0 inc 2 next 1"});
}

TEST_CASE("a host at which everything fails gets nothing for a while") {
    Pool pool(1);
    const Program find = pool.begin("ann", "find");
    pool.open(find, 1);
    for (int i = 0; i < 20; ++i) pool.gexec(find, 1, i);
    for (int i = 0; i < 16; ++i) {
        const Lines next = pool.launched("h1", "ann/1:" + std::to_string(i), Code::io_error);
        CHECK(next.size() == (i < 15 ? 1u : 0u));
    }
    CHECK(pool.call_in("h1").empty());
    pool.now = pool.now + seconds(10);
    CHECK(pool.call_in("h1") == Lines{"h1: launch ann/1:15 inc 2 next 1"});
}

TEST_CASE("a failed grain is tried on the same host first, then elsewhere, then reported") {
    Pool pool(2);
    const Program find = pool.begin("ann", "find");
    pool.open(find, 1);
    pool.gexec(find, 1, 0, 1);
    CHECK(pool.end("h1", "ann/1:0", 0, 11) ==
          Lines{"h1: ack ann/1:0 inc 1 last 1 ended taken", "h1: launch ann/1:0 inc 2 next 1"});
    CHECK(pool.end("h1", "ann/1:0", 0, 11) ==
          Lines{"h1: ack ann/1:0 inc 2 last 1 ended taken", "h2: launch ann/1:0 inc 3 next 1"});
    CHECK(pool.at("ann/1:0").course->nogo.get() == std::vector<HostId>{HostId{0}});
    CHECK(pool.at("ann/1:0").course->out_length == 0);  // what failed runs wrote is dropped
    CHECK(pool.end("h2", "ann/1:0", 0, 11) == Lines{"h2: ack ann/1:0 inc 3 last 1 ended taken"});
    CHECK(pool.gwait(find, 1, 0) == Lines{"ann: result ann/1:0 completed 1 sent 1 signal 11 out 6"});
    CHECK(pool.at("ann/1:0").course->failures == 3);
    CHECK(total(pool.at("ann/1:0")) == 3000);
}

TEST_CASE("the same host is preferred even where a lower class has a free slot") {
    Pool pool;
    pool.add_host("low", 1);
    pool.add_host("high", 2);
    pool.table();
    const Program find = pool.begin("ann", "find");
    pool.open(find, 1);
    pool.first_call("high");
    pool.gexec(find, 1, 0, 3);
    pool.first_call("low");
    CHECK(pool.end("high", "ann/1:0", 1) ==
          Lines{"high: ack ann/1:0 inc 1 last 1 ended taken", "high: launch ann/1:0 inc 2 next 1"});
    CHECK(pool.end("high", "ann/1:0", 1).back() == "low: launch ann/1:0 inc 3 next 1");
}

TEST_CASE("where there is no elsewhere, there again, and attempts are the user's choice") {
    Pool pool(1);
    const Program find = pool.begin("ann", "find");
    pool.open(find, 1);
    SubmitGrain g = Pool::grain(1, 0);
    g.demands.attempts = 5;
    pool.call(find, g);
    for (int i = 1; i < 5; ++i) {
        CHECK(pool.end("h1", "ann/1:0", 7).back() == "h1: launch ann/1:0 inc " + std::to_string(i + 1) + " next 1");
        CHECK(pool.at("ann/1:0").course->nogo->empty());
    }
    CHECK(pool.end("h1", "ann/1:0", 7) == Lines{"h1: ack ann/1:0 inc 5 last 1 ended taken"});
    CHECK(pool.at("ann/1:0").as<core::Finished>().exit_code == 7);
    g.grain = 1;
    g.demands.attempts = 1;
    pool.call(find, g);
    pool.end("h1", "ann/1:1", 7);
    CHECK(pool.status("ann/1:1") == "finished");
}

TEST_CASE("innocent ends never count and do not come back in a circle") {
    Pool pool(1);
    const Program find = pool.begin("ann", "find");
    pool.open(find, 1);
    pool.gexec(find, 1, 0);
    for (Incarnation i = 1; i <= 10; ++i) {
        CHECK(pool.end("h1", "ann/1:0", 74, 0, true) ==
              Lines{"h1: ack ann/1:0 inc " + std::to_string(i) + " last 1 ended taken"});
        CHECK(pool.call_in("h1").empty());
        pool.now = pool.now + seconds(10);
        CHECK(pool.call_in("h1") == Lines{"h1: launch ann/1:0 inc " + std::to_string(i + 1) + " next 1"});
    }
    CHECK(pool.at("ann/1:0").course->failures == 0);
}

TEST_CASE("a grain that is given back goes to an alternate at once") {
    Pool pool(2);
    const Program find = pool.begin("ann", "find");
    pool.open(find, 1);
    pool.gexec(find, 1, 0);
    pool.checkpoint("h1", "ann/1:0", "part", "half way");
    CHECK(pool.end("h1", "ann/1:0", 0, 15, true) ==
          Lines{"h1: ack ann/1:0 inc 1 last 2 ended taken", "h2: launch ann/1:0 inc 2 checkpoint 8 next 2"});
    CHECK(pool.at("ann/1:0").course->out_length == 4);
}

TEST_CASE("an older session whose grains no host can take is in no other's way") {
    Pool pool(1);
    const Program ann = pool.begin("ann", "find"), bob = pool.begin("bob", "b");
    pool.open(ann, 1), pool.gexec(ann, 1, 9), pool.gexec(ann, 1, 0);
    pool.open(bob, 1), pool.gexec(bob, 1, 0);
    const auto why = [&] { return pool.explain("bob/1:0").summary; };
    CHECK(why().find("older sessions, such as ann/1, go first") != std::string::npos);
    Grain g = pool.at("ann/1:0");
    g.course.edit().nogo = std::vector<HostId>{HostId{0}};
    Undo undo;
    apply(pool.state, SetGrain{Pool::key("ann/1:0"), g}, undo);
    CHECK(why().find("older") == std::string::npos);
}

TEST_CASE("a grain of a class that is busy does not stop the others behind it") {
    Pool pool;
    pool.add_host("h1", 1, 1);
    pool.add_host("h2", 2, 1);
    pool.table();
    const Program find = pool.begin("ann", "find");
    pool.open(find, 1);
    for (int i = 0; i < 3; ++i) pool.gexec(find, 1, i, 1);
    pool.gexec(find, 1, 3, 2);
    CHECK(pool.first_call("h2").back() == "h2: launch ann/1:3 inc 1 next 1");
    CHECK(pool.first_call("h1").back() == "h1: launch ann/1:0 inc 1 next 1");
}
