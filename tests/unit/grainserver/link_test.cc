// Whom the grain server calls and when, and its time slice.
#include "core_bench.h"
#include "support/about.h"

using namespace bench;

TEST_CASE("the back-off is quick at first, doubles, and is bounded by the interval and by 30 s") {
    REQUIRE(back_off(1, seconds(10), 0.5) == milliseconds(200));
    REQUIRE(back_off(2, seconds(10), 0.5) == milliseconds(400));
    REQUIRE(back_off(5, seconds(10), 0.5) == milliseconds(3200));
    REQUIRE(back_off(40, seconds(10), 0.5) == seconds(10));
    REQUIRE(back_off(40, seconds(300), 0.5) == seconds(30));
    REQUIRE(back_off(40, milliseconds(50), 0.5) == milliseconds(200));
    REQUIRE(back_off(40, seconds(300), 0.0) == seconds_of(22.5));
    REQUIRE(back_off(40, seconds(300), 0.999) < seconds_of(37.5));
}

TEST_CASE("nothing is reported before the first call was answered") {
    Bench b;
    b.in(Adopted{id(), 0, 1, 0, true, server::Ending::none, "", ExitFacts{true, 0, 0, false, "", {}}});
    b.look(id(), dir({{1, 5}}));
    b.in(Began{});
    b.one<Connect>();
    REQUIRE(b.sent<wire::FirstCall>().empty());
    b.in(LinkOpened{});
    const auto calls = b.sent<wire::FirstCall>();
    REQUIRE(calls.size() == 1);
    REQUIRE(calls[0].host == "h1");
    REQUIRE(calls[0].boot_id == "boot");
    REQUIRE(calls[0].held.size() == 1);
    REQUIRE(calls[0].held[0].incarnation == 1);
    REQUIRE(b.none<SendReport>());
    b.message(wire::Configure{9, 2, 1});
    const SendReport report = b.one<SendReport>();
    REQUIRE(report.ended);
    REQUIRE(report.first == 1);
    REQUIRE(report.last == 1);
    b.one<SaveConfig>();
}

TEST_CASE("a connection that comes to nothing is given up, and tried again with back-off") {
    Bench b;
    b.in(Began{});
    b.one<Connect>();
    b.in(LinkClosed{"refused"});
    REQUIRE(b.state.link_at == b.now + milliseconds(200));
    b.pass(milliseconds(199));
    REQUIRE(b.none<Connect>());
    b.pass(milliseconds(1));
    b.one<Connect>();
    b.in(LinkOpened{});
    b.clear();
    b.pass(link_patience);  // no answer to the first call
    b.one<Disconnect>();
    REQUIRE(b.state.link == Link::down);
    REQUIRE(b.state.failures == 2);
    b.in(LinkClosed{"late"});  // nothing changes while it is down
    REQUIRE(b.state.failures == 2);
    b.pass(seconds(1));
    b.one<Connect>();
    b.in(LinkOpened{});
    b.message(wire::Configure{9, 2, 1});
    REQUIRE(b.state.failures == 0);
}

TEST_CASE("a reason why the scheduler does not answer is logged once, and another one too") {
    Bench b;
    b.connect(9);
    const auto logged = [&](const char *why) {
        b.clear();
        b.in(LinkClosed{why});
        const auto logs = b.take<Log>();
        b.pass(seconds(40));
        b.in(LinkOpened{});
        return logs.size() == 1 && logs[0].text.find(why) != std::string::npos;
    };
    CHECK(logged("the peer closed the connection"));
    CHECK(logged("the certificate of scheduler has expired"));
    CHECK_FALSE(logged("the certificate of scheduler has expired"));
    b.message(wire::Configure{9, 2, 1});
    CHECK(logged("the certificate of scheduler has expired"));
}

TEST_CASE("a refused server asks again after some seconds, then more seldom, and logs the reason once") {
    Bench b;
    b.state.interval = seconds(300);
    b.in(Began{});
    const auto refused = [&](const char *why, Duration pause) {
        CAPTURE(why, pause.seconds());
        b.in(LinkOpened{});
        b.clear();
        b.message(wire::Refused{why});
        b.one<Disconnect>();
        const auto logs = b.take<Log>();
        const Duration nearly{pause.ns - milliseconds(1).ns};
        b.pass(nearly);
        CHECK(b.none<Connect>());
        b.pass(milliseconds(1));
        b.one<Connect>();
        return logs.size() == 1 ? logs[0].text : "";
    };
    CHECK(refused("not in the host table", milliseconds(1600)) == about("refuses not in the host table again 15 s"));
    for (const Duration pause : {milliseconds(3200), milliseconds(6400), seconds(12), seconds(12)})
        CHECK(refused("not in the host table", pause).empty());
    CHECK(refused("its certificate is revoked", seconds(12)) == about("certificate is revoked"));
    b.in(LinkOpened{});
    b.message(wire::Configure{300, 2, 1});
    b.in(LinkClosed{"it ends"});
    b.pass(seconds(1));
    CHECK(refused("not in the host table", milliseconds(1600)) == about("not in the host table"));
    b.in(LinkOpened{});
    b.message(wire::Configure{1, 2, 1});
    b.in(LinkClosed{"it ends"});
    b.pass(seconds(1));
    refused("not in the host table", seconds(1));  // never longer than its interval
}

TEST_CASE("it calls in each interval, after the reports of the same call-in") {
    Bench b;
    b.connect(9);
    b.run_grain(id());
    b.pass(seconds_of(8.9));
    b.take<Look>();
    REQUIRE(b.none<Gauge>());
    b.clear();
    b.pass(seconds_of(0.2));
    // the look comes before the gauge, so its report comes before the CallIn
    std::size_t look_at = 0, gauge_at = 0;
    for (std::size_t i = 0; i < b.out.size(); ++i) {
        if (std::get_if<Look>(&b.out[i])) look_at = i;
        if (std::get_if<Gauge>(&b.out[i])) gauge_at = i;
    }
    REQUIRE(gauge_at > look_at);
    b.look(id(), dir({{1, 0}}));
    const SendReport nothing = b.one<SendReport>();  // usage, nothing new
    REQUIRE(nothing.first == 1);
    REQUIRE(nothing.last == 0);
    b.in(Gauged{1.5, 42});
    const auto calls = b.sent<wire::CallIn>();
    REQUIRE(calls.size() == 1);
    REQUIRE(calls[0].load == 1.5);
    REQUIRE(calls[0].free_memory_kb == 42);
    REQUIRE(b.state.next_call_in > b.now);
}

TEST_CASE("while the scheduler is away slices go on and nothing is sent") {
    Bench b;
    b.connect(9);
    b.run_grain(id());
    b.in(LinkClosed{"gone"});
    b.pass(seconds(30));
    REQUIRE(b.none<Gauge>());
    REQUIRE(b.none<Send>());
    REQUIRE_FALSE(b.take<Look>().empty());
}

TEST_CASE("the warning comes before the slice ends by the notice, at most the slice") {
    REQUIRE(lead_of(0, seconds(9)) == seconds(2));
    REQUIRE(lead_of(0, seconds(3)) == seconds(1));
    REQUIRE(lead_of(1, seconds(300)) == seconds(60));
    REQUIRE(lead_of(1, seconds(10)) == seconds(10));
    REQUIRE(lead_of(-5, seconds(9)) == seconds(2));
    REQUIRE(lead_of(INT32_MAX, seconds(9)) == seconds(9));
}

TEST_CASE("checkpoint signals go only to grains that announced themselves, once in a slice") {
    Bench b;
    b.connect(9);
    b.run_grain(id(1));
    b.run_grain(id(2));
    b.pass(seconds_of(6.9));
    b.in(Looked{id(1), dir({{1, 0}})});
    b.in(Looked{id(2), dir({{1, 0}}, {}, false)});
    REQUIRE(b.none<CheckpointSignal>());
    b.clear();
    b.pass(seconds_of(0.2));
    b.in(Looked{id(1), dir({{1, 0}})});
    b.in(Looked{id(2), dir({{1, 0}}, {}, false)});
    REQUIRE(b.one<CheckpointSignal>().id == id(1));
    b.pass(seconds(1));
    b.in(Looked{id(1), dir({{1, 0}})});
    REQUIRE(b.none<CheckpointSignal>());
    b.clear();
    b.pass(seconds(8));  // the next slice's warning
    b.in(Looked{id(1), dir({{1, 0}})});
    REQUIRE(b.one<CheckpointSignal>().id == id(1));
}

TEST_CASE("a grain that starts after the moment of warning is left alone until the next slice") {
    Bench b;
    b.connect(9);
    b.pass(seconds(8));
    b.run_grain(id());
    b.pass(seconds_of(0.9));
    b.in(Looked{id(), dir({{1, 0}})});
    REQUIRE(b.none<CheckpointSignal>());
    b.clear();
    b.pass(seconds_of(7.5));
    b.in(Looked{id(), dir({{1, 0}})});
    b.one<CheckpointSignal>();
}

TEST_CASE("a message that is not for a grain server ends the connection") {
    Bench b;
    b.connect();
    b.message(wire::Done{});
    b.one<Disconnect>();
}

TEST_CASE("a scheduler in an older epoch than one that this server has worked for is refused") {
    Bench b;
    b.in(Began{});
    b.in(LinkOpened{});
    b.message(wire::Configure{9, 2, 3});
    REQUIRE(b.state.link == Link::ready);
    REQUIRE(b.state.epoch == 3);
    b.in(LinkClosed{"it ended"});
    b.pass(seconds(1));
    b.in(LinkOpened{});
    b.clear();
    b.message(wire::Configure{9, 7, 2});
    REQUIRE(b.state.epoch == 3);
    REQUIRE(b.state.slots == 2);
    REQUIRE(b.state.link == Link::down);
    b.one<Disconnect>();
    REQUIRE(b.none<SaveConfig>());
    REQUIRE(b.one<Log>().text.find("epoch 2") != std::string::npos);
    CHECK(b.sent<wire::CallIn>().at(0).shut == about("it has worked for epoch 3 scheduler epoch 2"));
    b.pass(seconds(9 * 5 / 4 + 1));
    b.in(LinkOpened{});
    b.clear();
    b.message(wire::Configure{9, 2, 4});
    REQUIRE(b.state.link == Link::ready);
    REQUIRE(b.state.epoch == 4);
    b.one<SaveConfig>();
}
