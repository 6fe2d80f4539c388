// d_sethost and grains that are restarted by command.
#include <limits>

#include "pool.h"
#include "scheduler/core/decisions.h"
#include "support/about.h"

using namespace dcs;
using namespace dcs::core;

namespace {

struct SetHostStage {
    Pool pool;
    Program ann, root;
    explicit SetHostStage(int hosts = 1, int slots = 1) : pool(hosts, slots) {
        ann = pool.begin("ann", "find");
        root = pool.stranger("root", true);
        pool.open(ann, 1);
    }
    static wire::SetHost change(const std::string &host = "h1") {
        wire::SetHost c;
        c.host = host;
        return c;
    }
    const Host &h1() const { return *pool.state.host(HostId{0}); }
    // The code of the only answer, which changed nothing.
    std::string refusal(const Program &p, const wire::SetHost &c) {
        const Lines lines = pool.set(p, c);
        REQUIRE(lines.size() == 1);
        CHECK(pool.changes.empty());
        const std::string text = lines[0].substr(lines[0].find("error ") + 6);
        return text.substr(0, text.find(':'));
    }
};

}  // namespace

TEST_CASE("the advice about a drained host: for a grain that waits, with the host's name if there is one such host") {
    SetHostStage s;
    const auto advice = [&](const char *grain) {
        for (const wire::WhyRow &row : s.pool.explain(grain).reasons)
            if (row.reason == "drained") return row.hint;
        return std::string("none");
    };
    wire::SetHost c = SetHostStage::change();
    c.drained = 1;
    s.pool.gexec(s.ann, 1, 0);
    s.pool.set(s.root, c);
    CHECK(advice("ann/1:0").empty());  // it runs there
    s.pool.gexec(s.ann, 1, 1);
    CHECK(advice("ann/1:1") == "dcs host undrain h1");
    s.pool.add_host("h2");
    s.pool.table();
    c.host = "h2";
    s.pool.set(s.root, c);
    CHECK(advice("ann/1:1") == "dcs host undrain NAME");
}

TEST_CASE("only those with privilege set hosts, and what they say is checked") {
    SetHostStage s;
    wire::SetHost c = SetHostStage::change();
    c.slots = 2;
    CHECK(s.refusal(s.ann, c) == "REFUSED");
    c.host = "h7";
    CHECK(s.refusal(s.root, c) == "NOT_FOUND");
    CHECK(s.pool.set(s.root, c)[0].find("add a host") != std::string::npos);
    c = SetHostStage::change();
    c.slots = 65537;
    CHECK(s.refusal(s.root, c) == "INVALID");
    for (const double bad :
         {0.0, 1e10, std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
        c = SetHostStage::change();
        c.limit_s = bad;
        CHECK(s.refusal(s.root, c) == "INVALID");
    }
    c = SetHostStage::change();
    c.drained = 2;
    CHECK(s.refusal(s.root, c) == "INVALID");
    c = SetHostStage::change();
    c.session = 1;  // without clear_nogo, and without a grain
    CHECK(s.refusal(s.root, c) == "INVALID");
    c.clear_nogo = true;
    CHECK(s.refusal(s.root, c) == "INVALID");
    c.user = "ann";
    c.grain = 5;
    CHECK(s.refusal(s.root, c) == "GRAIN_UNKNOWN");
    c.session = 9;
    CHECK(s.refusal(s.root, c) == "SESSION_UNKNOWN");
}

TEST_CASE("times must grow in the result, not in the request") {
    SetHostStage s;
    wire::SetHost c = SetHostStage::change();
    c.interval_s = 31;  // alert is 30
    CHECK(s.refusal(s.root, c) == "INVALID");
    c.alert_s = 31;
    CHECK(s.pool.set(s.root, c) == Lines{"h1: configure interval 31000ms slots 1", "root: done"});
    c = SetHostStage::change();
    c.limit_s = 30;
    CHECK(s.refusal(s.root, c) == "INVALID");
    c.extended_s = 20;
    CHECK(s.refusal(s.root, c) == "INVALID");
    c = SetHostStage::change();
    c.limit_s = 500;
    CHECK(s.refusal(s.root, c) == "INVALID");  // beyond extended, 120
    c.extended_s = 500.5;
    CHECK(s.pool.set(s.root, c) == Lines{"root: done"});
    CHECK(s.h1().config->limit == seconds(500));
    CHECK(s.h1().config->extended == milliseconds(500'500));
    CHECK(s.h1().config->interval == seconds(31));
    CHECK(to_text(s.h1().setting) == "interval=31 alert=31 limit=500 extended=500.5");
    CHECK(next_deadline(s.pool.state) == s.pool.now + seconds(31) + Duration{1});
}

TEST_CASE("what is set is durable, is told to the log with its author, and outlives the table") {
    SetHostStage s;
    wire::SetHost c = SetHostStage::change();
    c.slots = 3;
    c.host_class = 4;
    s.pool.events.clear();
    s.pool.set(s.root, c);
    REQUIRE(s.pool.events ==
            Lines{"audit: root asked to change a host, h1: done, from as in the host table to slots=3 class=4"});
    bool durably = false;
    for (const Change &change : s.pool.changes)
        if (const auto *set = std::get_if<SetHost>(&change)) durably = durably || set->durable;
    CHECK(durably);
    CHECK(s.pool.touched_disk());
    CHECK(s.h1().config->slots == 3);
    CHECK(s.h1().config->host_class == 4);
    s.pool.hosts[0].slots = 5;
    s.pool.table();
    CHECK(s.h1().config->slots == 3);
    s.pool.set(s.root, c);  // nothing new
    CHECK_FALSE(s.pool.touched_disk());
    c = SetHostStage::change();
    c.reset = true;
    CHECK(s.pool.set(s.root, c) == Lines{"h1: configure interval 10000ms slots 5", "root: done"});
    CHECK(s.h1().setting == HostSetting());
    CHECK(s.h1().config == s.h1().table);
}

TEST_CASE("a drain has a reason, which stays until the host is undrained") {
    SetHostStage s;
    wire::SetHost c = SetHostStage::change();
    c.drain_reason = "new disk";
    CHECK(s.refusal(s.root, c) == "INVALID");
    c.drained = 1;
    s.pool.events.clear();
    s.pool.set(s.root, c);
    CHECK(s.pool.touched_disk());
    CHECK(s.pool.events.front() ==
          "audit: root asked to change a host, h1: done, from as in the host table to drained (new disk)");
    c = SetHostStage::change();
    c.drained = 1, c.slots = 0;  // evicted later
    s.pool.set(s.root, c);
    const auto hosts = s.pool.answer<wire::QueryReply>(s.ann, wire::Query{wire::QueryType::hosts}).hosts;
    CHECK((hosts.at(0).drain_reason == "new disk" && hosts.at(0).settings == "slots=0 drained"));
    c.drained = 0, c.slots = 1;
    s.pool.set(s.root, c);
    CHECK(s.h1().setting.drain_reason.empty());
}

TEST_CASE("the explanation of a grain has the reasons of drains, each once") {
    Pool pool(3);
    const Program ann = pool.begin("ann", "find"), root = pool.stranger("root", true);
    for (const char *host : {"h1", "h2", "h3"}) {
        wire::SetHost c = SetHostStage::change(host);
        c.drained = 1;
        c.drain_reason = host == std::string("h2") ? "" : "new disk";
        pool.set(root, c);
    }
    pool.open(ann, 1);
    pool.gexec(ann, 1, 0, 1);
    const wire::Explanation e = pool.explain("ann/1:0");
    REQUIRE(e.reasons.size() == 1);
    CHECK((e.reasons[0].reason == "drained" && e.reasons[0].hosts == 3));
    CHECK(e.reasons[0].text == "the host is drained and starts no new grains: new disk");
}

TEST_CASE("shorter times count from when they are set, not from what the longer ones permitted") {
    SetHostStage s(1, 2);
    s.pool.hosts[0].interval = seconds(300);
    s.pool.hosts[0].alert = seconds(900);
    s.pool.hosts[0].limit = seconds(1800);
    s.pool.hosts[0].extended = seconds(7200);
    s.pool.table();
    s.pool.gexec(s.ann, 1, 0);
    s.pool.launched("h1", "ann/1:0");
    s.pool.now = s.pool.now + seconds(250);
    wire::SetHost c = SetHostStage::change();
    c.interval_s = 10;
    c.alert_s = 20;
    c.limit_s = 30;
    c.extended_s = 40;
    s.pool.set(s.root, c);
    s.pool.feed(Tick{});
    CHECK(s.h1().status == HostStatus::active);
    s.pool.now = s.pool.now + seconds(31);
    s.pool.feed(Tick{});
    CHECK(s.h1().status != HostStatus::active);
}

TEST_CASE("slots 0 evicts at once with a checkpoint, and later slots bring the grains back") {
    SetHostStage s(1, 2);
    s.pool.gexec(s.ann, 1, 0);
    s.pool.gexec(s.ann, 1, 1);
    wire::SetHost c = SetHostStage::change();
    c.slots = 0;
    CHECK(s.pool.set(s.root, c) == Lines{"h1: configure interval 10000ms slots 0",
                                         "h1: withdraw ann/1:0 inc 1 because the host was taken out of service",
                                         "h1: withdraw ann/1:1 inc 1 because the host was taken out of service",
                                         "root: done"});
    s.pool.checkpoint("h1", "ann/1:0");
    s.pool.end("h1", "ann/1:0", 0, 15, true);
    s.pool.end("h1", "ann/1:1", 0, 15, true);
    CHECK(s.pool.queue("ann/1") == std::vector<GrainNumber>{1, 0});
    CHECK(s.pool.at("ann/1:0").course->moves->back().reason == MoveReason::host_closed);
    CHECK(s.pool.at("ann/1:0").course->failures == 0);
    CHECK(s.pool.gwait(s.ann, 1, 0, true).at(0).find("CANNOT_RUN") != std::string::npos);
    c = SetHostStage::change();
    c.reset = true;
    s.pool.now = s.pool.now + seconds(6);
    const Lines back = s.pool.set(s.root, c);
    CHECK(std::count(back.begin(), back.end(), "h1: launch ann/1:1 inc 2 next 1") == 1);
    CHECK(std::count(back.begin(), back.end(), "h1: launch ann/1:0 inc 2 checkpoint 5 next 2") == 1);
}

TEST_CASE("a parked wait learns that nothing can run any more") {
    SetHostStage s;
    s.pool.gexec(s.ann, 1, 0, 2);
    s.pool.add_host("h2", 2);
    s.pool.table();
    CHECK(s.pool.gwait(s.ann, 1, 0, true).empty());
    wire::SetHost c = SetHostStage::change("h2");
    c.host_class = 1;
    CHECK(s.pool.set(s.root, c).back().find("CANNOT_RUN") != std::string::npos);
}

TEST_CASE("a drained host gets nothing new and keeps what it has") {
    SetHostStage s(1, 2);
    s.pool.gexec(s.ann, 1, 0);
    wire::SetHost c = SetHostStage::change();
    c.drained = 1;
    CHECK(s.pool.set(s.root, c) == Lines{"root: done"});
    CHECK(s.pool.gexec(s.ann, 1, 1) == Lines{"ann: done"});
    CHECK(s.pool.boundary("h1").empty());
    CHECK(s.pool.status("ann/1:0") == "running");
    CHECK(s.pool.end("h1", "ann/1:0") == Lines{"h1: ack ann/1:0 inc 1 last 1 ended taken"});
    CHECK(s.pool.gwait(s.ann, 1, 1, true).empty());  // drained is not for ever
    c.drained = 0;
    CHECK(s.pool.set(s.root, c) == Lines{"root: done", "h1: launch ann/1:1 inc 1 next 1"});
}

TEST_CASE("a nogo place is cleared for one grain, or for all with everything else against the host") {
    SetHostStage s(1, 2);
    for (int i = 0; i < 2; ++i) {
        SubmitGrain g = Pool::grain(1, i);
        g.program = 5;
        s.pool.call(s.ann, g);
        if (s.pool.status("ann/1:" + std::to_string(i)) == "running")
            s.pool.launched("h1", "ann/1:" + std::to_string(i), Code::not_found);
    }
    CHECK(s.h1().missing.count(ProgramOf{"ann", 5}) == 1);
    wire::SetHost c = SetHostStage::change();
    c.clear_nogo = true;
    c.user = "ann";
    c.session = 1;
    c.grain = 0;
    CHECK(s.pool.set(s.root, c).front() == "root: done");
    CHECK(s.pool.status("ann/1:0") == "running");
    CHECK(s.pool.at("ann/1:0").course->nogo->empty());
    CHECK(s.pool.touched_disk());
    s.pool.launched("h1", "ann/1:0", Code::not_found);
    s.pool.launched("h1", "ann/1:1", Code::limit);
    Host blamed = s.h1();
    blamed.blamed_lately = 3;
    Undo undo;
    apply(s.pool.state, SetHost{HostId{0}, blamed}, undo);
    c = SetHostStage::change();
    c.clear_nogo = true;
    s.pool.events.clear();
    s.pool.set(s.root, c);
    CHECK(s.pool.events.front() == about("host h1 2"));
    CHECK(s.pool.status("ann/1:0") == "running");
    CHECK(s.pool.status("ann/1:1") == "running");
    CHECK(s.h1().missing.empty());
    CHECK(s.h1().held_back.empty());
    CHECK(s.h1().blamed_lately == 0);
}

TEST_CASE("a grain is restarted: running ones are withdrawn and come back with their checkpoint") {
    SetHostStage s(2);
    s.pool.gexec(s.ann, 1, 0);
    s.pool.gexec(s.ann, 1, 1);
    s.pool.gexec(s.ann, 1, 2);
    s.pool.end("h1", "ann/1:0", 1);  // one failure
    CHECK(s.pool.restart(s.ann, "ann/1:0") ==
          Lines{"h1: withdraw ann/1:0 inc 2 because restarted by ann", "ann: done"});
    CHECK(s.pool.at("ann/1:0").course->failures == 0);
    s.pool.checkpoint("h1", "ann/1:0", "out", "half way");
    // It is at the front, and nothing is wrong with the host.
    CHECK(s.pool.end("h1", "ann/1:0", 0, 15, true) ==
          Lines{"h1: ack ann/1:0 inc 2 last 2 ended taken", "h1: launch ann/1:0 inc 3 checkpoint 8 next 2"});
    CHECK(s.pool.queue("ann/1") == std::vector<GrainNumber>{2});
    const std::vector<Move> &moves = s.pool.at("ann/1:0").course->moves;
    REQUIRE(moves.size() == 2);
    CHECK(moves[0].reason == MoveReason::failed);
    CHECK(moves[1].reason == MoveReason::restarted);
    CHECK(moves[1].detail == "restarted by ann");
}

TEST_CASE("a running grain whose host cannot be told moves at once, and its copy there is fenced") {
    SetHostStage s(1);
    s.pool.gexec(s.ann, 1, 0);
    s.pool.hang_up("h1");
    s.pool.add_host("h2");
    s.pool.table();
    s.pool.first_call("h2");
    CHECK(s.pool.restart(s.root, "ann/1:0") == Lines{"root: done", "h2: launch ann/1:0 inc 2 next 1"});
    CHECK(s.pool.first_call("h1", {{"ann/1:0", 1, 1000}}).at(1) ==
          about("h1 withdraw ann/1:0 inc 1 discard no longer leased host"));
}

TEST_CASE("a restarted ready grain forgets its failures, its nogo hosts and what holds it back") {
    SetHostStage s(1);
    SubmitGrain g = Pool::grain(1, 0);
    g.program = 9;
    s.pool.call(s.ann, g);
    s.pool.launched("h1", "ann/1:0", Code::not_found);
    CHECK(s.pool.status("ann/1:0") == "ready");
    CHECK(s.pool.restart(s.ann, "ann/1:0") == Lines{"ann: done", "h1: launch ann/1:0 inc 2 next 1"});
    s.pool.launched("h1", "ann/1:0", Code::limit);
    CHECK(s.pool.call_in("h1").empty());
    CHECK(s.pool.restart(s.ann, "ann/1:0") == Lines{"ann: done", "h1: launch ann/1:0 inc 3 next 1"});
}

TEST_CASE("what is over is not restarted, nor what is another's") {
    SetHostStage s;
    const auto code = [&](const Program &p, const std::string &grain) {
        const std::string line = s.pool.restart(p, grain).at(0);
        CHECK(s.pool.changes.empty());
        return line.substr(line.find("error ") + 6, line.find(": ", line.find("error ")) - line.find("error ") - 6);
    };
    s.pool.gexec(s.ann, 1, 0);
    CHECK(code(s.pool.stranger("eve"), "ann/1:0") == "REFUSED");
    CHECK(code(s.ann, "ann/1:7") == "GRAIN_UNKNOWN");
    CHECK(code(s.ann, "ann/2:0") == "SESSION_UNKNOWN");
    s.pool.end("h1", "ann/1:0");
    CHECK(code(s.ann, "ann/1:0") == "REFUSED");
    s.pool.gexec(s.ann, 1, 1);
    s.pool.gkill(s.ann, 1, 1);
    CHECK(code(s.root, "ann/1:1") == "REFUSED");
    s.pool.gexec(s.ann, 1, 2);
    s.pool.close(s.ann, 1);
    CHECK(code(s.ann, "ann/1:2") == "SESSION_CLOSED");
}

TEST_CASE("the note of a host says that a grain waits for a slot until that one has got it") {
    Pool pool(1);
    const Program ann = pool.begin("ann", "old"), bob = pool.begin("bob", "young");
    pool.open(ann, 1);
    pool.open(bob, 1);
    pool.gexec(bob, 1, 0);
    pool.launched("h1", "bob/1:0");
    pool.gexec(ann, 1, 0);
    const auto note = [&] {
        return pool.answer<wire::QueryReply>(ann, wire::Query{wire::QueryType::hosts}).hosts[0].note;
    };
    CHECK(note().empty());
    pool.boundary("h1");
    CHECK(note() == "1 grain waits for a slot");
    SECTION("the other grain leaves") {
        pool.staged("h1", "ann/1:0");
        CHECK(note() == "1 grain waits for a slot");
        pool.end("h1", "bob/1:0", 0, 15, true);
    }
    SECTION("the other grain finishes first") { pool.end("h1", "bob/1:0"); }
    SECTION("it does not start") { pool.launched("h1", "ann/1:0", Code::not_found); }
    CHECK(note().empty());
}

TEST_CASE("a host's row has the killed grains that its server says are still ending, until it is away") {
    Pool pool(1);
    const Program find = pool.begin("ann", "find");
    const auto ending = [&] {
        return pool.answer<wire::QueryReply>(find, wire::Query{wire::QueryType::hosts}).hosts.at(0).ending;
    };
    wire::CallIn call;
    for (const auto &[says, shown] : {std::pair(2, 2), std::pair(-1, 0), std::pair(1, 1)}) {
        call.ending = says;
        pool.feed(ServerCallIn{pool.conn("h1"), HostId{0}, call});
        CHECK(ending() == shown);
    }
    pool.feed(ConnectionClosed{pool.conn("h1")});
    CHECK(ending() == 0);
    pool.first_call("h1", {});
    CHECK(ending() == 0);
}
