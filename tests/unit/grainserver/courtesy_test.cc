// W2 as tables: what is seen of the host and of two grains, second by second, and what is done about it.
#include <sstream>

#include "core_bench.h"
#include "support/about.h"

using namespace bench;

namespace {
constexpr std::int64_t mb = 1024;

// A host of two cores and 1000 MB. Grain 1 has more memory than grain 2, which announces itself.
struct CourtesyDesk {
    Bench b;
    HostSample host;
    std::map<GrainId, GrainSample> grains;
    std::int64_t step_ms = 1000;

    explicit CourtesyDesk(double interval = 5, bool two = true) {
        b.state.courtesy.on = true;
        host.cores = 2;
        host.stalled_us = 0;
        host.memory_kb = 1000 * mb;
        host.free_kb = 800 * mb;
        b.connect(interval, 4);
        run(1, 300 * mb);
        if (two) run(2, 100 * mb);
        b.in(Looked{id(2), dir({{1, 1}})});
        answer();
        b.clear();
    }
    void run(int number, std::int64_t memory_kb) {
        b.run_grain(id(number));
        grains[id(number)] = {0, 0, false, memory_kb};
    }
    void answer() {
        Watched seen{host, {}};
        for (const auto &[g, sample] : grains) {
            const auto it = b.state.grains.find(g);
            if (it != b.state.grains.end() && it->second.phase == Phase::running) seen.grains[g] = sample;
        }
        b.in(seen);
    }
    // One second in which others keep so much of the two cores busy, each grain gets that part of its
    // time and waits for a core for that part, and the host stalls for that part.
    void second(double others, double got, double waited, double stalled = 0) {
        const double all_us = static_cast<double>(step_ms) * 1000;
        const auto us = [&](double part) { return static_cast<std::int64_t>(part * all_us); };
        b.now = b.now + milliseconds(step_ms);
        host.total_us += 2 * step_ms * 1000;
        host.busy_us += us(others);
        host.stalled_us += us(stalled);
        for (auto &[g, sample] : grains) {
            sample.cpu_us += us(got);
            sample.waited_us += us(waited);
            host.busy_us += us(got);
            host.yielding_us += us(got);
        }
        answer();
    }
    // What was decided, in words.
    std::string done() {
        std::ostringstream text;
        for (const Effect &e : b.out) {
            if (const auto *x = std::get_if<ThrashSignal>(&e)) text << " warn" << x->id.key.grain;
            if (const auto *x = std::get_if<KillGrain>(&e)) text << " kill" << x->id.key.grain;
            if (const auto *x = std::get_if<WriteEnding>(&e))
                text << (x->ending == server::Ending::asked ? " ask" : " end") << x->id.key.grain
                     << (x->given_back == wire::GivenBack::shut_out    ? "(shut out)"
                         : x->given_back == wire::GivenBack::thrashing ? "(thrashing)"
                                                                       : "");
            if (std::holds_alternative<Gauge>(e)) text << (b.state.courtesy.shut.empty() ? " open" : " shut");
        }
        b.clear();
        return text.str().empty() ? "" : text.str().substr(1);
    }
};

struct Row {
    int seconds;
    double others, got, waited;
    const char *done;
};
std::string play(CourtesyDesk &desk, const std::vector<Row> &rows) {
    for (std::size_t i = 0; i < rows.size(); ++i) {
        std::string all;
        for (int s = 0; s < rows[i].seconds; ++s) {
            desk.second(rows[i].others, rows[i].got, rows[i].waited);
            const std::string done = desk.done();
            if (!done.empty()) all += (all.empty() ? "" : " ") + std::to_string(s + 1) + ":" + done;
        }
        if (all != rows[i].done) return "row " + std::to_string(i) + " came to: " + all;
    }
    return "";
}
}  // namespace

TEST_CASE("courtesy: the owner's work shuts grains out, and the host stays shut until it was calm for a while") {
    CourtesyDesk desk;  // interval 5 s: patience and calm are 10 s
    CHECK(play(desk, {
                         {20, 0.3, 1.0, 0.0, ""},   // room for all
                         {9, 2.0, 0.01, 0.98, ""},  // a burst
                         {20, 0.3, 1.0, 0.0, ""},
                         {30, 1.0, 0.5, 0.5, ""},  // one core each is left to share
                         {12, 2.0, 0.01, 0.98, "10:shut ask1(shut out) ask2(shut out)"},  // both, with a checkpoint
                     }) == "");
    CHECK(desk.b.state.courtesy.shut == about("processors 100 %"));
    desk.b.exit(id(1), dir({{1, 1}}), {});
    desk.b.exit(id(2), dir({{1, 1}}), {});
    desk.b.clear();
    CHECK(play(desk, {
                         {30, 2.0, 0, 0, ""},
                         {9, 1.0, 0, 0, ""},  // nearly calm for long enough
                         {1, 2.0, 0, 0, ""},
                         {9, 1.0, 0, 0, ""},
                         {3, 1.0, 0, 0, "1:open"},
                     }) == "");
}

TEST_CASE("courtesy: a grain that sleeps or waits for a disk is not shut out, however busy the host is") {
    CourtesyDesk desk;
    CHECK(play(desk, {{9, 2.0, 0.0, 0.0, ""}, {9, 1.7, 0.0, 0.0, ""}, {30, 1.7, 0.02, 0.3, ""}}) == "");
}

TEST_CASE("courtesy: grains that are in each other's way are not shut out by anybody") {
    CourtesyDesk desk;
    CHECK(play(desk, {{60, 0.2, 0.05, 0.95, ""}}) == "");
}

TEST_CASE("courtesy: a kernel that tells no waiting times is asked whether they are ready") {
    CourtesyDesk desk;
    for (auto &[g, sample] : desk.grains) sample.waited_us = -1;
    for (int i = 0; i < 9; ++i) {
        desk.second(2.0, 0.01, 0);
        for (auto &[g, sample] : desk.grains) sample.waited_us = -1;
    }
    CHECK(desk.b.state.grains.at(id(1)).ending == server::Ending::none);
    for (int i = 0; i < 12; ++i) {
        desk.second(2.0, 0.01, 0);
        for (auto &[g, sample] : desk.grains) sample.waited_us = -1, sample.ready = g == id(1);
    }
    CHECK(desk.b.state.grains.at(id(1)).given_back == wire::GivenBack::shut_out);
    CHECK(desk.b.state.grains.at(id(2)).ending == server::Ending::none);
}

TEST_CASE("courtesy: a starved grain has time for its checkpoint, and its end is innocent with the reason") {
    CourtesyDesk desk(5, false);
    desk.b.in(Looked{id(1), dir({{1, 1}})});
    desk.b.clear();
    for (int i = 0; i < 10; ++i) desk.second(2.0, 0.01, 0.98);
    desk.b.look(id(1), dir({{1, 1}}));
    CHECK(desk.b.take<CheckpointSignal>().size() == 1);
    for (int i = 0; i < 12; ++i) {  // seconds: it hardly runs
        desk.b.pass(seconds(1));
        if (!desk.b.take<Look>().empty()) desk.b.in(Looked{id(1), dir({{1, 1}})});
    }
    CHECK(desk.b.none<TerminateGrain>());
    desk.b.pass(milliseconds(100));
    desk.b.look(id(1), dir({{1, 1}, {2, 0}}, {{1, 3}}));
    desk.b.one<TerminateGrain>();
    CHECK(desk.b.take<SendReport>().back().checkpoint == 1);  // after those of the call-ins
    desk.b.exit(id(1), dir({{2, 0}}, {{1, 3}}), {true, 0, 15, false, "", {}});
    desk.b.ack(id(1), 1, false, wire::Verdict::taken);
    const SendReport r = desk.b.one<SendReport>();
    CHECK(r.ended);
    CHECK(r.innocent);
    CHECK(r.given_back == wire::GivenBack::shut_out);
    CHECK(r.reason.find("other work") != std::string::npos);
}

TEST_CASE("courtesy: what ends by itself before it is terminated was not given back") {
    CourtesyDesk desk(5, false);
    for (int i = 0; i < 10; ++i) desk.second(2.0, 0.01, 0.98);
    desk.b.clear();
    desk.b.exit(id(1), dir({{1, 1}}), {});
    const SendReport r = desk.b.one<SendReport>();
    CHECK_FALSE(r.innocent);
    CHECK(r.given_back == wire::GivenBack::no);
}

TEST_CASE("courtesy: short of memory: a warning, then the largest with a checkpoint, one at a time") {
    CourtesyDesk desk;
    desk.host.free_kb = 60 * mb;
    desk.second(0.2, 1, 0);
    desk.second(0.2, 1, 0);
    CHECK(desk.done() == "warn2");  // the other one has not announced itself
    desk.second(0.2, 1, 0);
    CHECK(desk.done() == "shut ask1(thrashing)");
    CHECK(desk.b.state.courtesy.shut == about("60 MB 1000"));
    for (int i = 0; i < 5; ++i) desk.second(0.2, 1, 0);
    CHECK(desk.done() == "");  // the check is repeated without it first
    desk.b.exit(id(1), dir({{1, 1}}), {});
    desk.b.clear();
    desk.second(0.2, 1, 0);
    desk.second(0.2, 1, 0);
    CHECK(desk.done() == "");
    desk.second(0.2, 1, 0);
    CHECK(desk.done() == "ask2(thrashing)");
}

TEST_CASE("courtesy: a grain that shrinks when it is warned stays") {
    CourtesyDesk desk;
    desk.host.free_kb = 60 * mb;
    desk.second(0.2, 1, 0);
    desk.second(0.2, 1, 0);
    CHECK(desk.done() == "warn2");
    desk.host.free_kb = 400 * mb;
    for (int i = 0; i < 20; ++i) desk.second(0.2, 1, 0);
    CHECK(desk.done() == "");
    desk.host.free_kb = 60 * mb;  // and is warned again
    desk.second(0.2, 1, 0);
    CHECK(desk.done() == "warn2");
}

TEST_CASE("courtesy: of grains with equal memory the one that came last goes") {
    CourtesyDesk desk;
    desk.grains[id(2)].memory_kb = desk.grains[id(1)].memory_kb + 100;  // a trifle
    desk.grains[id(1)].memory_kb += 300;
    desk.host.free_kb = 60 * mb;
    for (int i = 0; i < 3; ++i) desk.second(0.2, 1, 0);
    CHECK(desk.done().find("ask2") != std::string::npos);
}

TEST_CASE("courtesy: memory nearly gone, or going within the second: the largest is killed at once") {
    CourtesyDesk desk;
    SECTION("nearly gone") { desk.host.free_kb = 20 * mb; }
    SECTION("going") {
        desk.second(0.2, 1, 0);
        desk.step_ms = 100;
        desk.host.free_kb = 90 * mb;  // 710 MB less in 100 ms
    }
    desk.second(0.2, 1, 0);
    CHECK(desk.done() == "end1(thrashing) kill1 shut");
    desk.second(0.2, 1, 0);
    CHECK(desk.done() == "");  // a killed one frees its memory first
    desk.b.exit(id(1), dir({{1, 1}}, {}, false), {true, 0, 9, false, "", {}});
    const auto reports = desk.b.take<SendReport>();
    REQUIRE(reports.size() == 1);
    CHECK(reports[0].innocent);
    CHECK(reports[0].given_back == wire::GivenBack::thrashing);
}

TEST_CASE("courtesy: the one that is asked already is killed when there is no time left") {
    CourtesyDesk desk;
    desk.host.free_kb = 60 * mb;
    for (int i = 0; i < 3; ++i) desk.second(0.2, 1, 0);
    CHECK(desk.done() == "warn2 shut ask1(thrashing)");
    desk.host.free_kb = 10 * mb;
    desk.second(0.2, 1, 0);
    CHECK(desk.done() == "end1(thrashing) kill1");
}

TEST_CASE("courtesy: a host that pages, where the kernel tells no stalls, by what it swaps") {
    CourtesyDesk desk;
    SECTION("stalls") {
        for (int i = 0; i < 3; ++i) desk.second(0.2, 1, 0, 0.1);
        CHECK(desk.done() == "");
        for (int i = 0; i < 3; ++i) desk.second(0.2, 1, 0, 0.3);
        CHECK(desk.b.state.courtesy.shut == about("processes 30 %"));
    }
    SECTION("swapped pages") {
        desk.host.stalled_us = -1;
        desk.answer();
        const auto second = [&](std::int64_t pages) {
            desk.host.swapped_pages += pages;
            desk.second(0.2, 1, 0);
            desk.host.stalled_us = -1;
        };
        for (int i = 0; i < 3; ++i) second(100);
        CHECK(desk.done() == "");
        for (int i = 0; i < 3; ++i) second(1000);
        CHECK(desk.b.state.courtesy.shut == about("1000 swapped second"));
    }
    CHECK(desk.done() == "warn2 shut ask1(thrashing)");
}

TEST_CASE("courtesy: a shut host starts nothing, also what the scheduler sent before it knew") {
    CourtesyDesk desk(5, false);
    desk.b.message(wire::Configure{5, 1, 1});
    desk.b.launch(id(3));
    desk.b.in(LaunchWritten{id(3)});  // waits for the slot
    for (int i = 0; i < 10; ++i) desk.second(2.0, 0.01, 0.98);
    auto results = desk.b.sent<wire::LaunchResult>();
    REQUIRE(results.size() == 1);
    CHECK_FALSE(results[0].ok);
    CHECK(results[0].code == static_cast<int>(Code::limit));
    CHECK(desk.b.state.grains.count(id(3)) == 0);
    desk.b.launch(id(4));
    results = desk.b.sent<wire::LaunchResult>();
    REQUIRE(results.size() == 1);
    CHECK(results[0].text == about("accepts no grains"));
    desk.b.in(Gauged{1.0, 5000, false});
    const auto calls = desk.b.sent<wire::CallIn>();
    REQUIRE(calls.size() == 1);
    CHECK(calls[0].shut == desk.b.state.courtesy.shut);
}

TEST_CASE("courtesy: an idle host is looked at with its call-ins, a host with grains each second") {
    Bench b;
    b.state.courtesy.on = true;
    b.connect(5, 1);
    HostSample host;
    host.cores = 2;
    host.memory_kb = 1000 * mb;
    host.free_kb = 800 * mb;
    b.in(Watched{host, {}});
    CHECK(b.state.courtesy.look_at == Instant::never());
    for (int i = 0; i < 2; ++i) {  // two whole slices without room
        b.pass(seconds(5));
        CHECK(b.take<WatchHost>().size() == 1);
        host.total_us += 10'000'000;
        host.busy_us += 9'900'000;
        b.in(Watched{host, {}});
    }
    CHECK(b.state.courtesy.shut == about("processors 99 %"));
    CHECK(b.state.courtesy.look_at == b.now + seconds(5));
    b.state.courtesy.shut.clear();
    b.run_grain(id(1));
    b.pass(Duration{});  // it was looked at just now
    CHECK(b.take<WatchHost>().empty());
    b.pass(milliseconds(100));
    b.one<WatchHost>();
    b.in(Watched{host, {{id(1), {}}}});
    CHECK(b.state.courtesy.look_at == b.now + seconds(1));
    host.free_kb = 200 * mb;  // little is left: more often
    b.wait(seconds(1));
    b.in(Watched{host, {{id(1), {}}}});
    CHECK(b.state.courtesy.look_at == b.now + milliseconds(100));
}

TEST_CASE("courtesy: a look after a long pause is only a beginning, without the option nothing is looked at") {
    CourtesyDesk desk;
    desk.step_ms = 3600'000;
    desk.second(2.0, 0.0, 1.0);
    CHECK(desk.done() == "");
    CHECK(desk.b.state.grains.at(id(1)).courtesy.starved == Duration{});
    Bench b;
    b.connect(5, 1);
    b.run_grain(id(1));
    b.pass(seconds(20));
    CHECK(b.none<WatchHost>());
}

TEST_CASE("courtesy: why a grain is given back outlives the server") {
    Bench b;
    Adopted a;
    a.id = id();
    a.started = true;
    a.ending = server::Ending::terminated;
    a.reason = "memory runs out";
    a.given_back = wire::GivenBack::thrashing;
    a.exit = ExitFacts{true, 0, 15, false, "", {}};
    b.in(a);
    b.look(id(), dir({{1, 1}}));
    b.connect();
    b.in(LinkClosed{"x"});
    b.pass(seconds(1));
    b.in(LinkOpened{});
    b.clear();
    b.message(wire::Configure{9, 2, 1});
    const SendReport r = b.one<SendReport>();
    CHECK(r.innocent);
    CHECK(r.given_back == wire::GivenBack::thrashing);
}
