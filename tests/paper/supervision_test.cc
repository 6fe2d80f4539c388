// What the paper's sections 5.5, 5.6 and 6 say about hosts: a test for each sentence, driving the
// scheduler's core.
#include "unit/scheduler_core/pool.h"

using namespace dcs;
using namespace dcs::core;

namespace {

// ann's session runs grain 0 on h1; h2 stands by and calls in.
struct Watch {
    Pool pool;
    Program ann, root;
    explicit Watch(bool checked = false) {
        HostConfig &c = pool.add_host("h1");
        if (checked) {
            c.check = {"h1"};
            c.file_server = {"nfs"};
            c.gateway = {"gw"};
        }
        pool.add_host("h2");
        pool.table();
        pool.first_call("h1");
        ann = pool.begin("ann", "a");
        root = pool.stranger("root", true);
        pool.open(ann, 1);
        pool.gexec(ann, 1, 0);
        pool.launched("h1", "ann/1:0");
    }
    // h1 is silent for that long, and h2 is there at the end of it.
    Lines silence(Duration d) {
        Lines lines = pool.wait(Duration{d.ns - seconds(1).ns});
        if (pool.conn("h2") == no_connection) pool.first_call("h2");
        else pool.call_in("h2");
        const Lines rest = pool.wait(seconds(1));
        lines.insert(lines.end(), rest.begin(), rest.end());
        return lines;
    }
    const Host &h1() const { return *pool.state.host(HostId{0}); }
    std::string where() const { return pool.state.host(pool.at("ann/1:0").lessee)->config->name; }
    static wire::SetHost change() {
        wire::SetHost c;
        c.host = "h1";
        return c;
    }
};

}  // namespace

// ---- 3.2, 5.5, 5.6 -----------------------------------------------------------------------
TEST_CASE("3.2: a grain limit of zero removes what runs there immediately, and the host from service") {
    Watch w;
    wire::SetHost c = Watch::change();
    c.slots = 0;
    const Lines lines = w.pool.set(w.root, c);
    CHECK(std::count(lines.begin(), lines.end(),
                     "h1: withdraw ann/1:0 inc 1 because the host was taken out of service") == 1);
    w.pool.checkpoint("h1", "ann/1:0");
    w.pool.end("h1", "ann/1:0", 0, 15, true);
    w.pool.now = w.pool.now + seconds(10);
    CHECK(w.pool.call_in("h1").empty());
}

TEST_CASE("3.2: administrative changes are for the scheduler_master or root only") {
    Watch w;
    wire::SetHost c = Watch::change();
    c.slots = 0;
    CHECK(w.pool.set(w.ann, c).at(0).find("REFUSED") != std::string::npos);
    CHECK(w.h1().config->slots == 1);
}

TEST_CASE("3.2: lists of active and of delinquent hosts") {
    Watch w;
    w.silence(seconds(31));
    const auto names = [&](const char *status) {
        wire::Query q;
        q.type = wire::QueryType::hosts;
        q.status = status;
        Lines found;
        for (const auto &row : w.pool.answer<wire::QueryReply>(w.ann, q).hosts) found.push_back(row.name);
        return found;
    };
    CHECK(names("active") == Lines{"h2"});
    CHECK(names("delinquent") == Lines{"h1"});
}

TEST_CASE("5.5: for each grain server host there is a list of users whose grains run there") {
    Watch w;
    w.pool.hosts[1].users = {"bob"};
    w.pool.table();
    w.pool.first_call("h2");
    CHECK(w.pool.gexec(w.ann, 1, 1) == Lines{"ann: done"});
    w.pool.hosts[1].users = {"bob", "ann"};
    CHECK(w.pool.table() == Lines{"h2: launch ann/1:1 inc 1 next 1"});
}

TEST_CASE("5.5: only valid users make calls, and the list is reread when the scheduler is told to") {
    Watch w;
    Policy p;
    p.users = {"bob"};
    w.pool.rules(p);
    CHECK(w.pool.gexec(w.ann, 1, 1).at(0).find("REFUSED") != std::string::npos);
    p.users = {"bob", "ann"};
    w.pool.rules(p);
    CHECK(w.pool.gexec(w.ann, 1, 1) == Lines{"ann: done"});
}

TEST_CASE("5.6: the host table is reread when directed, and hosts come and go") {
    Watch w;
    const std::vector<HostConfig> hosts = w.pool.hosts;
    w.pool.hosts.erase(w.pool.hosts.begin());
    CHECK(w.pool.table() == Lines{"h1: refused: this host was removed from the scheduler's host table", "close h1"});
    CHECK(w.pool.first_call("h2").back() == "h2: launch ann/1:0 inc 2 next 1");
    w.pool.hosts = hosts;
    w.pool.table();
    CHECK(w.pool.first_call("h1").size() == 1);
}

TEST_CASE("5.6: d_sethost resets the job limit of a reformed server") {
    Watch w;
    wire::SetHost c = Watch::change();
    c.slots = 0;
    w.pool.set(w.root, c);
    w.pool.end("h1", "ann/1:0", 0, 15, true);
    c.slots = 1;
    CHECK(w.pool.set(w.root, c) ==
          Lines{"h1: configure interval 10000ms slots 1", "root: done", "h1: launch ann/1:0 inc 2 next 1"});
}

TEST_CASE("5.6: d_sethost clears the host's bit, when a grain still thinks that it should avoid the host") {
    Watch w;
    for (int i = 1; i <= 2; ++i) w.pool.end("h1", "ann/1:0", 1);
    CHECK(w.pool.at("ann/1:0").course->nogo.get() == std::vector<HostId>{HostId{0}});
    wire::SetHost c = Watch::change();
    c.clear_nogo = true;
    CHECK(w.pool.set(w.root, c) == Lines{"root: done", "h1: launch ann/1:0 inc 3 next 1"});
}

TEST_CASE("5.6: intervals are set by command and told to the server") {
    Watch w;
    wire::SetHost c = Watch::change();
    c.interval_s = 20;
    CHECK(w.pool.set(w.root, c).front() == "h1: configure interval 20000ms slots 1");
    c.interval_s = 40;  // beyond its alert
    CHECK(w.pool.set(w.root, c).front().find("INVALID") != std::string::npos);
}

// ---- 6 ------------------------------------------------------------------------------------
TEST_CASE("6: a host that calls in for the first time is rejected if it is not in the database") {
    Watch w;
    CHECK(w.pool.first_call("stranger").back() == "close stranger");
}

TEST_CASE("6: otherwise its call in interval and grain count limit are sent to it") {
    Watch w;
    w.pool.hosts[1].interval = seconds(7);
    w.pool.hosts[1].slots = 3;
    w.pool.table();
    CHECK(w.pool.first_call("h2").front() == "h2: configure interval 7000ms slots 3");
}

TEST_CASE("6: servers call in each interval to keep their host active") {
    Watch w;
    for (int i = 0; i < 20; ++i) {
        w.pool.wait(seconds(10));
        w.pool.boundary("h1");
        CHECK(w.h1().status == HostStatus::active);
    }
}

TEST_CASE("6: not heard of for the alert time a server is delinquent, for the limit dead, and its grains are moved") {
    Watch w;
    CHECK(w.silence(seconds(30)).empty());
    CHECK(w.h1().status == HostStatus::active);
    w.pool.wait(seconds(1));
    CHECK(w.h1().status == HostStatus::delinquent);
    CHECK(w.where() == "h1");
    CHECK(w.silence(seconds(30)) == Lines{"close h1", "h2: launch ann/1:0 inc 2 next 1"});
    CHECK(w.h1().status == HostStatus::dead);
}

TEST_CASE("6: an overdue host that runs grains is checked, with its file server and gateway") {
    Watch w(true);
    CHECK(w.silence(seconds(61)) == Lines{"probe h1"});
    const auto *probe = std::get_if<ProbeHost>(&w.pool.effects.back());
    REQUIRE(probe);
    CHECK(probe->check == Lines{"h1"});
    CHECK(probe->file_server == Lines{"nfs"});
    CHECK(probe->gateway == Lines{"gw"});
}

TEST_CASE("6: an overdue host without grains is not checked") {
    Watch w(true);
    w.pool.end("h1", "ann/1:0");
    CHECK(w.silence(seconds(61)) == Lines{"close h1"});
}

TEST_CASE("6: if it could be active it may be delinquent for the extended time before its grains are moved") {
    struct {
        std::optional<bool> host, files, gateway;
        bool waits;
    } cases[] = {{true, true, true, true},    // its server may hang
                 {false, false, true, true},  // waits for its files
                 {false, true, false, true},  // behind a gateway that is down
                 {false, true, true, false}, {false, {}, {}, false}, {{}, true, true, false}, {{}, {}, {}, false}};
    for (const auto &c : cases) {
        Watch w(true);
        w.silence(seconds(61));
        w.pool.probed("h1", c.host, c.files, c.gateway);
        CAPTURE(c.host.value_or(false), c.files.value_or(false), c.gateway.value_or(false));
        CHECK(w.where() == (c.waits ? "h1" : "h2"));
        if (!c.waits) continue;
        w.silence(seconds(58));
        CHECK(w.where() == "h1");
        w.silence(seconds(2));  // 121 s after its last call
        CHECK(w.where() == "h2");
    }
}

TEST_CASE("6: the scheduler's check is not answered: the host is not waited for") {
    Watch w(true);
    w.silence(seconds(61));
    w.silence(seconds(11));
    CHECK(w.where() == "h2");
}

TEST_CASE("6: a missing host that shows up with its grain still on the ready queue is forgiven") {
    Watch w;
    w.pool.wait(seconds(61));
    REQUIRE(w.pool.status("ann/1:0") == "ready");
    CHECK(w.pool.first_call("h1", {{"ann/1:0", 1}}) == Lines{"h1: configure interval 10000ms slots 1"});
    CHECK(w.pool.status("ann/1:0") == "running");
    CHECK(w.pool.at("ann/1:0").incarnation == 1);
    CHECK(w.pool.end("h1", "ann/1:0") == Lines{"h1: ack ann/1:0 inc 1 last 1 ended taken"});
}

TEST_CASE("6: of a reassigned grain the copy with less total running time is killed") {
    for (const bool older_ran_longer : {true, false}) {
        Watch w;
        w.silence(seconds(61));
        REQUIRE(w.where() == "h2");
        wire::GrainReport r = w.pool.report("ann/1:0");
        r.usage.user_us = 50;
        w.pool.send("h2", r);
        const Lines lines = w.pool.first_call("h1", {{"ann/1:0", 1, older_ran_longer ? 51 : 49}});
        CAPTURE(older_ran_longer);
        CHECK(w.where() == (older_ran_longer ? "h1" : "h2"));
        CHECK(lines.at(1) == (older_ran_longer
                                  ? "h2: withdraw ann/1:0 inc 2 discard because an older copy of it has run longer"
                                  : "h1: withdraw ann/1:0 inc 1 discard because it is no longer leased to this host"));
    }
}

TEST_CASE("6: a premature call when a grain terminates fills its slot") {
    Watch w;
    w.pool.gexec(w.ann, 1, 1);
    CHECK(w.pool.end("h1", "ann/1:0") ==
          Lines{"h1: ack ann/1:0 inc 1 last 1 ended taken", "h1: launch ann/1:1 inc 1 next 1"});
}

TEST_CASE("6: return code and termination signal are reported to the control program") {
    Watch w;
    for (int i = 0; i < 3; ++i) w.pool.end("h1", "ann/1:0", 5, 0);
    CHECK(w.pool.status("ann/1:0") == "ready");  // twice here, and h2 is there to be tried
    w.pool.first_call("h2");
    w.pool.end("h2", "ann/1:0", 5, 0);
    CHECK(w.pool.gwait(w.ann, 1, 0) == Lines{"ann: result ann/1:0 completed 1 sent 1 code 5 out 6"});
}

TEST_CASE("6: a failed grain is first retried on the same machine, then on another, then reported") {
    Watch w;
    w.pool.first_call("h2");
    CHECK(w.pool.end("h1", "ann/1:0", 1).back() == "h1: launch ann/1:0 inc 2 next 1");
    CHECK(w.pool.end("h1", "ann/1:0", 1).back() == "h2: launch ann/1:0 inc 3 next 1");
    CHECK(w.pool.end("h2", "ann/1:0", 1) == Lines{"h2: ack ann/1:0 inc 3 last 1 ended taken"});
    CHECK(w.pool.status("ann/1:0") == "finished");
}

TEST_CASE("6: a grain that completes on the machine where it had failed is a result as any other") {
    Watch w;
    w.pool.end("h1", "ann/1:0", 0, 7);
    w.pool.end("h1", "ann/1:0");
    CHECK(w.pool.gwait(w.ann, 1, 0) == Lines{"ann: result ann/1:0 completed 1 sent 1 out 6"});
}

TEST_CASE("6: idle servers report load and memory with their calls") {
    Watch w;
    w.pool.first_call("h2");
    w.pool.call_in("h2", 12345);
    CHECK(w.pool.state.host(HostId{1})->free_memory_kb == 12345);
    CHECK(w.pool.state.host(HostId{1})->load == 0.5);
}
