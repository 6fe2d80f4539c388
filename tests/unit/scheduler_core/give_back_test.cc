// What starts by itself again: it rests, more and more, people hear of it, and what ran has an end.
#include "base/limits.h"
#include "support/about.h"
#include "unit/scheduler_core/pool.h"

using namespace dcs;
using namespace dcs::core;

namespace {

struct GiveBackStage {
    Pool pool;
    Program ann;
    explicit GiveBackStage(int hosts) : pool(hosts) {
        ann = pool.begin("ann", "find");
        pool.open(ann, 1);
        pool.gexec(ann, 1, 0);
    }
    const Grain &g() { return pool.at("ann/1:0"); }
    std::string host() { return pool.state.host(g().lessee)->config->name; }
    Lines gives_up(int code = 74) {
        wire::GrainReport r = pool.end_report("ann/1:0", code, 0, true);
        r.given_back = wire::GivenBack::by_itself;
        r.reason = "the grain could not write its output on this host";
        return pool.send(host(), r);
    }
    // Until it runs again; how long that took.
    Duration rest() {
        const Instant since = pool.now;
        for (int i = 0; i < 100'000 && g().status() == GrainStatus::ready; ++i) {
            pool.wait(milliseconds(500));
            for (const char *h : {"h1", "h2"})
                if (pool.state.host_id(h) != no_host) pool.call_in(h);  // or it would be overdue
        }
        REQUIRE(g().status() == GrainStatus::running);
        return pool.now - since;
    }
    std::vector<std::string> doctor() {
        pool.call(ann, wire::Doctor{});
        std::vector<std::string> names;
        for (const Effect &e : pool.effects)
            if (const auto *reply = std::get_if<ReplyDoctor>(&e))
                for (const wire::ProblemRow &row : reply->problems) names.push_back(row.entity + " " + row.problem);
        return names;
    }
};

}  // namespace

TEST_CASE("a grain that always says it is not its fault rests longer each time, and has failed in the end") {
    GiveBackStage s(1);
    Duration longest{};
    for (int i = 1; i < limits::returns; ++i) {
        s.gives_up();
        CHECK(int{s.g().course->returns} == i);
        const Duration pause = s.rest();
        if (i > 2) CHECK(pause > longest);
        longest = std::max(longest, pause);
        CHECK(s.doctor().size() == (i >= limits::returns_told ? 1u : 0u));
    }
    CHECK(longest > seconds(600));
    CHECK(s.doctor().at(0) ==
          about("grain ann/1:0 returned 9 times row recently h1 grain could not write output host"));
    s.gives_up();
    CHECK(s.pool.status("ann/1:0") == "finished");
    CHECK(s.g().as<core::Finished>().exit_code == 74);
    CHECK(s.g().course->failures == 1);
    CHECK(s.g().course->moves->back().reason == MoveReason::given_up);
    CHECK(s.pool.explain("ann/1:0").summary == about("h1 74 10"));
    CHECK(s.doctor().empty());
}

TEST_CASE("the doctor does not name a returned grain of a closed session") {
    GiveBackStage s(1);
    for (int i = 1; i <= limits::returns_told; ++i) {
        s.gives_up();
        s.rest();
    }
    REQUIRE(s.doctor().size() == 1);
    s.pool.call(s.ann, wire::CloseSession{"", 1, -1});
    CHECK(s.doctor().empty());
}

TEST_CASE("a new checkpoint begins the count again, one that says the same does not") {
    GiveBackStage s(1);
    for (int i = 0; i < 3 * limits::returns; ++i) {
        s.pool.checkpoint("h1", "ann/1:0", "", "state " + std::to_string(i));
        s.gives_up(85);
        CHECK(int{s.g().course->returns} == 1);
        s.rest();
    }
    for (int i = 1; i < limits::returns; ++i) {
        s.pool.checkpoint("h1", "ann/1:0", "", "the same");
        s.gives_up(85);
        CHECK(int{s.g().course->returns} == i);
        s.rest();
    }
    s.pool.checkpoint("h1", "ann/1:0", "", "the same");
    s.gives_up(85);
    CHECK(s.pool.status("ann/1:0") == "finished");
    CHECK(s.g().as<core::Finished>().exit_code == 85);
}

TEST_CASE("hosts that die, owners, older sessions and orders never use the bound up") {
    GiveBackStage s(2);
    for (int i = 0; i < 3 * limits::returns; ++i) {
        wire::GrainReport r = s.pool.end_report("ann/1:0", 0, 15, true);
        if (i % 4 == 1) r.given_back = wire::GivenBack::shut_out;
        if (i % 4 == 2) r.given_back = wire::GivenBack::thrashing;
        if (i % 4 == 3) {
            const std::string host = s.host();
            s.pool.hang_up(host);
            s.pool.first_call(host);  // it came back without the grain
        } else {
            s.pool.send(s.host(), r);
        }
        CHECK(int{s.g().course->returns} == 0);
        if (s.g().status() == GrainStatus::ready) s.rest();
    }
    CHECK(s.g().course->failures == 0);
}

TEST_CASE("a start that the host's trouble prevents is tried more rarely, but for ever") {
    GiveBackStage s(1);
    Duration last{};
    for (int i = 1; i < 3 * limits::returns; ++i) {
        s.pool.launched("h1", "ann/1:0", Code::io_error);
        CHECK(s.pool.status("ann/1:0") == "ready");
        if (i >= limits::returns_told) CHECK(s.doctor().size() == 1);
        last = s.rest();
    }
    CHECK(last > seconds(18));  // two intervals
    CHECK(last < seconds(22));
    s.pool.launched("h1", "ann/1:0");
    CHECK(int{s.g().recent->refusals} == 0);
    CHECK(s.doctor().empty());
}

TEST_CASE("a restart by command ends the rest and the count") {
    GiveBackStage s(1);
    for (int i = 0; i < 5; ++i) {
        s.gives_up();
        if (i < 4) s.rest();
    }
    CHECK(s.pool.state.resting.size() == 1);
    CHECK(s.pool.restart(s.pool.stranger("root", true), "ann/1:0").back() == "h1: launch ann/1:0 inc 6 next 1");
    CHECK(int{s.g().course->returns} == 0);
    CHECK(s.pool.state.resting.empty());
    CHECK(s.pool.state.circling.empty());
}

TEST_CASE("reports that never fit together have an end too") {
    GiveBackStage s(1);
    for (int i = 1; i <= limits::returns; ++i) {
        wire::GrainReport r = s.pool.report("ann/1:0");
        r.first_seq = s.g().course->sequence + 3;
        r.last_seq = r.first_seq;
        r.has_checkpoint = true;
        r.checkpoint = "state";
        s.pool.send("h1", r);
        if (i < limits::returns) s.rest();
    }
    CHECK(s.pool.status("ann/1:0") == "finished");
    CHECK(s.g().as<core::Finished>().exit_code == 125);
}

TEST_CASE("a grain that its server gives up on the way comes back, and not for ever") {
    GiveBackStage s(1);
    for (int i = 1; i <= limits::returns; ++i) {
        s.pool.launched("h1", "ann/1:0");
        s.pool.launched("h1", "ann/1:0", Code::io_error);
        if (i < limits::returns) CHECK(s.g().course->moves->back().reason == MoveReason::given_back);
        if (i < limits::returns) s.rest();
    }
    CHECK(s.pool.status("ann/1:0") == "finished");
    CHECK(s.g().as<core::Finished>().exit_code == 125);
}

TEST_CASE("grains of one user that come back do not keep a host from others") {
    Pool pool(1);
    const Program ann = pool.begin("ann", "find"), bob = pool.begin("bob", "find");
    pool.open(ann, 1);
    for (int i = 0; i < 20; ++i) pool.gexec(ann, 1, i);
    for (int i = 0; i < 16; ++i) pool.launched("h1", "ann/1:" + std::to_string(i), Code::io_error);
    CHECK(pool.call_in("h1").empty());
    CHECK(pool.explain("ann/1:17").summary.find("1 trouble") != std::string::npos);
    pool.open(bob, 1);
    CHECK(pool.gexec(bob, 1, 0).back() == "h1: launch bob/1:0 inc 1 next 1");
}

TEST_CASE("a session that is removed takes the rests of its grains with it") {
    GiveBackStage s(1);
    for (int i = 0; i < 4; ++i) {
        s.gives_up();
        if (i < 3) s.rest();
    }
    CHECK(s.pool.state.circling.size() == 1);
    s.pool.close(s.ann, 1);
    s.pool.call(s.ann, wire::CleanSession{"", 1});
    CHECK(s.pool.state.circling.empty());
    CHECK(s.pool.state.resting.empty());
}
