// Launch, report, acknowledge, forget; the queue for slots.
#include "base/limits.h"
#include "core_bench.h"
#include "support/about.h"

using namespace bench;
using wire::Verdict;

TEST_CASE("a launch is written, started, answered") {
    Bench b;
    b.connect();
    b.in(LauncherUp{});
    b.launch(id());
    const WriteLaunch w = b.one<WriteLaunch>();
    REQUIRE(w.launch.argv.at(0) == "/bin/cat");
    REQUIRE(b.none<StartGrain>());
    b.in(LaunchWritten{id()});
    b.one<StartGrain>();
    REQUIRE(b.sent<wire::LaunchResult>().empty());
    b.in(GrainStarted{id()});
    auto results = b.sent<wire::LaunchResult>();
    REQUIRE(results.size() == 1);
    REQUIRE(results[0].ok);
    b.launch(id());  // the same once more: one process, the same answer
    REQUIRE(b.none<WriteLaunch>());
    results = b.sent<wire::LaunchResult>();
    REQUIRE(results.size() == 1);
    REQUIRE(results[0].ok);
}

TEST_CASE("a launch that fails is answered with its code and leaves nothing") {
    Bench b;
    b.connect();
    b.in(LauncherUp{});
    SECTION("no program") {
        b.launch(id());
        b.in(LaunchWritten{id()});
        b.in(StartFailed{id(), Code::not_found, false, "no such program"});
        const auto results = b.sent<wire::LaunchResult>();
        REQUIRE(results.size() == 1);
        REQUIRE_FALSE(results[0].ok);
        REQUIRE(results[0].code == static_cast<int>(Code::not_found));
        REQUIRE(results[0].text == "no such program");
        b.one<RemoveDir>();
    }
    SECTION("disk full") {
        b.launch(id());
        b.in(LaunchUnwritten{id(), Code::no_space, "full"});
        const auto results = b.sent<wire::LaunchResult>();
        REQUIRE(results.size() == 1);
        REQUIRE(results[0].code == static_cast<int>(Code::no_space));
    }
    REQUIRE(b.state.grains.empty());
}

TEST_CASE("a grain that was withdrawn keeps its slot until it is gone, the next one waits for it") {
    Bench b;
    b.connect(9, 1);
    b.run_grain(id(1));
    b.withdraw(id(1), true, "another lease");
    b.one<TerminateGrain>();
    REQUIRE(b.one<WriteEnding>().ending == server::Ending::discard);
    b.launch(id(2));
    b.in(LaunchWritten{id(2)});
    REQUIRE(b.none<StartGrain>());
    b.in(GrainExited{id(1), {}});
    REQUIRE(b.one<RemoveDir>().id == id(1));
    REQUIRE(b.one<StartGrain>().id == id(2));
    REQUIRE(b.none<SendReport>());
}

TEST_CASE("without a slot a launch is tried again and given up in the end, without blame") {
    Bench b;
    b.connect(9, 1);
    b.in(LauncherUp{});
    b.launch(id());
    b.in(LaunchWritten{id()});
    int starts = 0;
    for (int i = 0; i < 200 && !b.state.grains.empty(); ++i) {
        if (!b.take<StartGrain>().empty()) {
            ++starts;
            b.in(StartFailed{id(), Code::limit, true, "all slots are held"});
        }
        b.pass(milliseconds(100));
    }
    REQUIRE(starts > 20);
    REQUIRE(starts < 100);
    const auto results = b.sent<wire::LaunchResult>();
    REQUIRE(results.size() == 1);
    REQUIRE(results[0].code == static_cast<int>(Code::limit));
}

TEST_CASE("without a launcher a launch waits, does not spin, and is given up") {
    Bench b;
    b.connect();
    b.launch(id());
    b.in(LaunchWritten{id()});
    b.pass(seconds(14));
    REQUIRE(b.none<StartGrain>());
    REQUIRE(b.sent<wire::LaunchResult>().empty());
    b.pass(seconds(2));
    const auto results = b.sent<wire::LaunchResult>();
    REQUIRE(results.size() == 1);
    REQUIRE_FALSE(results[0].ok);
}

TEST_CASE("a newer incarnation ends the older one, a late launch of an older one is ignored") {
    Bench b;
    b.connect(9, 2);
    b.run_grain(id(1, 4));
    b.launch(id(1, 3));
    REQUIRE(b.none<WriteLaunch>());
    b.launch(id(1, 5));
    REQUIRE(b.one<KillGrain>().id == id(1, 4));
    REQUIRE(b.one<WriteLaunch>().id == id(1, 5));
}

TEST_CASE("a finished grain: report, call-in, acknowledged, forgotten") {
    Bench b;
    b.connect();
    b.run_grain(id());
    b.exit(id(), dir({{1, 10}}), {true, 3, 0, false, "", {}});
    const SendReport r = b.one<SendReport>();
    REQUIRE(r.ended);
    REQUIRE(r.exit_code == 3);
    REQUIRE_FALSE(r.innocent);
    REQUIRE(r.first == 1);
    REQUIRE(r.last == 1);
    REQUIRE(r.checkpoint == 0);
    b.one<Gauge>();  // early call-in
    b.ack(id(), 1, true, GENERATE(Verdict::taken, Verdict::have_it));
    b.one<RemoveDir>();
    REQUIRE(b.state.grains.empty());
}

TEST_CASE("a pending checkpoint is reported before the end") {
    Bench b;
    b.connect();
    b.run_grain(id(), 0, 4);  // increments count from 4
    b.exit(id(), dir({{4, 10}, {5, 20}, {6, 30}}, {{4, 7}, {5, 7}}), {true, 0, 9, false, "", {}});
    const SendReport first = b.one<SendReport>();
    REQUIRE_FALSE(first.ended);
    REQUIRE(first.checkpoint == 5);
    REQUIRE(first.first == 4);
    REQUIRE(first.last == 5);
    b.ack(id(), 5, false, Verdict::taken);
    REQUIRE(b.one<WriteAcked>().sequence == 5);
    const SendReport last = b.one<SendReport>();
    REQUIRE(last.ended);
    REQUIRE(last.first == 6);
    REQUIRE(last.last == 6);
    REQUIRE(last.signal == 9);
}

TEST_CASE("only a part was committed earlier: the rest is reported with the same checkpoint") {
    Bench b;
    b.connect();
    b.run_grain(id());
    b.in(Looked{id(), dir({{1, 1}, {2, 1}, {3, 1}, {4, 0}}, {{2, 5}, {3, 5}})});
    REQUIRE(b.one<SendReport>().last == 3);
    b.ack(id(), 2, false, Verdict::have_it);
    REQUIRE(b.one<WriteAcked>().sequence == 2);
    const SendReport rest = b.one<SendReport>();
    REQUIRE(rest.first == 3);
    REQUIRE(rest.last == 3);
    REQUIRE(rest.checkpoint == 3);
}

TEST_CASE("what was not acknowledged is sent again after a reconnect") {
    Bench b;
    b.connect();
    b.run_grain(id());
    b.exit(id(), dir({{1, 10}}), {});
    b.one<SendReport>();
    b.pass(seconds(20));
    REQUIRE(b.none<SendReport>());  // once per connection
    b.in(LinkClosed{"gone"});
    b.clear();
    b.pass(seconds(1));
    b.one<Connect>();
    b.in(LinkOpened{});
    REQUIRE(b.sent<wire::FirstCall>().at(0).held.size() == 1);
    REQUIRE(b.none<SendReport>());
    b.message(wire::Configure{9, 2, 1});
    REQUIRE(b.one<SendReport>().ended);
}

TEST_CASE("`later` keeps the report until the next call-in") {
    Bench b;
    b.connect(9);
    b.run_grain(id());
    b.exit(id(), dir({{1, 10}}), {});
    b.one<SendReport>();
    b.ack(id(), 0, true, Verdict::later);
    REQUIRE(b.none<SendReport>());
    REQUIRE(b.state.grains.size() == 1);
    b.pass(seconds(10));
    REQUIRE(b.one<SendReport>().ended);
}

TEST_CASE("`stale` ends a running grain without a word and forgets an ended one") {
    Bench b;
    b.connect();
    b.run_grain(id());
    SECTION("running") {
        b.ack(id(), 0, false, Verdict::stale);
        b.one<KillGrain>();
        b.in(GrainExited{id(), {}});
    }
    SECTION("ended") {
        b.exit(id(), dir({{1, 1}}), {});
        b.ack(id(), 1, true, Verdict::stale);
    }
    b.one<RemoveDir>();
    REQUIRE(b.state.grains.empty());
}

TEST_CASE("a result that the scheduler has already ends the copy that still runs") {
    Bench b;
    b.connect();
    b.run_grain(id());
    b.ack(id(), 9, true, Verdict::have_it);
    b.one<KillGrain>();
}

TEST_CASE("an answer to an older report does not count for the one on its way") {
    Bench b;
    b.connect();
    b.run_grain(id());
    b.in(Looked{id(), dir({{1, 1}, {2, 0}}, {{1, 5}})});
    b.one<SendReport>();
    b.ack(id(), 0, false, Verdict::have_it);  // of a call-in with nothing new
    REQUIRE(b.none<SendReport>());            // it is not sent a second time
    REQUIRE(b.state.grains.at(id()).outstanding.has_value());
    b.ack(id(), 1, false, Verdict::taken);
    REQUIRE_FALSE(b.state.grains.at(id()).outstanding.has_value());
}

TEST_CASE("a checkpoint that turns out broken is ignored, the one before it is used") {
    Bench b;
    b.connect();
    b.run_grain(id());
    b.in(Looked{id(), dir({{1, 1}, {2, 1}, {3, 1}}, {{1, 5}, {2, 5}})});
    REQUIRE(b.one<SendReport>().checkpoint == 2);
    b.in(ReportUnsendable{id(), ReportUnsendable::Why::bad_checkpoint, 2, "checksum"});
    REQUIRE(b.one<Log>().level == Level::error);  // a private pool's log has it
    REQUIRE(b.none<SendReport>());                // one is read for each look
    b.in(Looked{id(), dir({{1, 1}, {2, 1}, {3, 1}}, {{1, 5}, {2, 5}})});
    const SendReport r = b.one<SendReport>();
    REQUIRE(r.checkpoint == 1);
    REQUIRE(r.last == 1);
}

TEST_CASE("a checkpoint whose increments are not all there is not believed") {
    Bench b;
    b.connect();
    b.run_grain(id());
    b.in(Looked{id(), dir({{1, 1}, {3, 1}}, {{3, 5}})});
    for (const SendReport &r : b.take<SendReport>()) REQUIRE(r.checkpoint == 0);
}

TEST_CASE("too much output between two checkpoints ends the grain with that result") {
    Bench b;
    b.connect();
    b.run_grain(id());
    const std::uint64_t much = limits::report_bytes + 1;
    SECTION("found while it runs") {
        b.in(Looked{id(), dir({{1, much}})});
        b.one<KillGrain>();
        REQUIRE(b.one<WriteEnding>().ending == server::Ending::overrun);
        b.exit(id(), dir({{1, much}}), {true, 0, 9, false, "", {}});
    }
    SECTION("found after it ended by itself") { b.exit(id(), dir({{1, much}}), {}); }
    const SendReport r = b.one<SendReport>();
    REQUIRE(r.ended);
    REQUIRE(r.cut);
    REQUIRE_FALSE(r.innocent);
    REQUIRE(r.signal != 0);
    REQUIRE(r.reason.find("64 MiB") != std::string::npos);
}

TEST_CASE("output just at the limit is fine") {
    Bench b;
    b.connect();
    b.run_grain(id());
    b.in(Looked{id(), dir({{1, limits::report_bytes}})});
    REQUIRE(b.none<KillGrain>());
    b.exit(id(), dir({{1, limits::report_bytes}}), {});
    const SendReport r = b.one<SendReport>();
    REQUIRE_FALSE(r.cut);
    REQUIRE(r.signal == 0);
}

TEST_CASE("many untaken checkpoints that exceed a report: the grain is lost, not blamed") {
    Bench b;
    b.connect();
    b.run_grain(id());
    b.in(LinkClosed{"gone"});
    const std::uint64_t half = limits::report_bytes / 2 + 1;
    b.in(Looked{id(), dir({{1, half}, {2, half}, {3, 0}}, {{2, 5}})});
    b.one<KillGrain>();
    REQUIRE(b.one<WriteEnding>().ending == server::Ending::discard);
    b.pass(seconds(1));
    b.in(LinkOpened{});
    REQUIRE(b.sent<wire::FirstCall>().at(0).held.empty());
}

TEST_CASE("a checkpoint that is too big for a report: the grain is lost if others went before it, else it overran") {
    Bench b;
    b.connect();
    b.run_grain(id());
    b.in(LinkClosed{"gone"});
    const bool alone = GENERATE(true, false);
    const unsigned checkpoint = alone ? 1 : 2;
    b.in(Looked{id(), dir({{1, 1}, {2, 1}, {3, 1}}, {{checkpoint, 5}})});
    b.in(ReportUnsendable{id(), ReportUnsendable::Why::too_big, checkpoint, "too big"});
    std::string log;
    for (const Log &line : b.take<Log>()) log += line.text + "\n";
    const std::string most = "the grain wrote more than " + std::to_string(limits::report_bytes >> 20) + " MiB ";
    const WriteEnding ending = b.one<WriteEnding>();
    if (alone) {
        REQUIRE(ending.ending == server::Ending::overrun);
        REQUIRE(ending.reason == about(most + "between two checkpoints --output"));
    } else {
        REQUIRE(ending.ending == server::Ending::discard);
        REQUIRE(log == about("given up " + most + "while scheduler accepted no reports"));
    }
}

TEST_CASE("unanswered reports are bounded in bytes, an answer lets the next one go") {
    Bench b;
    b.connect(9, 4);
    for (int i = 1; i <= 3; ++i) b.run_grain(id(i));
    for (int i = 1; i <= 3; ++i) b.exit(id(i), dir({{1, 60u << 20}}), {});
    REQUIRE(b.take<SendReport>().size() == 2);
    b.ack(id(1), 1, true, Verdict::taken);
    REQUIRE(b.one<SendReport>().id == id(3));
}

TEST_CASE("files that cannot be read: tried at each call-in, then given up as lost") {
    Bench b;
    b.connect(9);
    b.run_grain(id());
    b.exit(id(), dir({{1, 5}}), {});
    for (int i = 0; i < 4; ++i) {
        INFO(i);
        b.one<SendReport>();
        b.in(ReportUnsendable{id(), ReportUnsendable::Why::unreadable, 0, "input/output error"});
        if (i < 3) b.pass(seconds(9));
    }
    REQUIRE(b.none<Disconnect>());  // the others of this host are not disturbed
    const auto said = b.take<Send>();
    const auto *result = said.empty() ? nullptr : std::get_if<wire::LaunchResult>(&said.back().message);
    REQUIRE(result != nullptr);
    REQUIRE_FALSE(result->ok);
    REQUIRE(result->code == static_cast<std::int32_t>(Code::io_error));
    REQUIRE(result->text == "its files cannot be read");
    REQUIRE(b.state.grains.empty());
}

TEST_CASE("status 74, an unknown status, a full disk and a stopped launcher are innocent, other ends are not") {
    Bench b;
    b.connect();
    b.run_grain(id());
    ExitFacts e;
    bool innocent = true;
    DirFacts d = dir({{1, 0}});
    d.announced = true;
    auto whose = wire::GivenBack::no;
    // clang-format off
    SECTION("write error") { e.code = 74; whose = wire::GivenBack::by_itself; }
    SECTION("74 of a program that never announced itself") { e.code = 74; d.announced = innocent = false; }
    SECTION("a full disk") { d.disk_full = true; whose = wire::GivenBack::by_itself; }
    SECTION("launcher stopped") { e.innocent = true; e.signal = 15; e.reason = "stopped"; }
    SECTION("code 1") { e.code = 1; innocent = false; }
    SECTION("signal 9") { e.signal = 9; innocent = false; }
    SECTION("signal 11 is not 74") { e.signal = 11; e.code = 74; innocent = false; }
    // clang-format on
    b.exit(id(), d, e);
    const SendReport r = b.one<SendReport>();
    REQUIRE(r.innocent == innocent);
    REQUIRE(r.given_back == whose);
    REQUIRE(r.exit_code == e.code);
    REQUIRE(r.reason.empty() != innocent);
}

TEST_CASE("an unknown exit status is innocent, and the last checkpoint is kept") {
    Bench b;
    b.connect();
    b.run_grain(id());
    ExitFacts e;
    e.reason = "the launcher died";
    b.in(GrainExited{id(), e});
    b.look(id(), dir({{1, 1}, {2, 1}}, {{1, 3}}));
    REQUIRE(b.one<SendReport>().checkpoint == 1);
    b.ack(id(), 1, false, Verdict::taken);
    const SendReport r = b.one<SendReport>();
    REQUIRE(r.innocent);
    REQUIRE(r.reason == "the launcher died");
}
