// Every state that a grain of the server can be in, and everything that can happen to it: what becomes
// of it, and what is done. Read life_table.txt; it is the specification.
#include <cstdio>
#include <fstream>

#include "core_bench.h"
#include "places.h"

using namespace bench;
using wire::Verdict;

namespace {
const char *name_of(Phase phase) {
    switch (phase) {
    case Phase::queued: return "queued";
    case Phase::starting: return "starting";
    case Phase::running: return "running";
    case Phase::ended: return "ended";
    }
    return "?";
}
const char *name_of(server::Ending ending) {
    switch (ending) {
    case server::Ending::none: return "";
    case server::Ending::asked: return "+asked";
    case server::Ending::terminated: return "+terminated";
    case server::Ending::overrun: return "+overrun";
    case server::Ending::discard: return "+discard";
    }
    return "?";
}
const char *name_of(Code code) {
    switch (code) {
    case Code::not_found: return "not_found";
    case Code::no_space: return "no_space";
    case Code::refused: return "refused";
    case Code::limit: return "limit";
    default: return "?";
    }
}
std::string state_of(const State &state) {
    std::string text;
    for (const auto &[lease, g] : state.grains) {
        text += std::string(text.empty() ? "" : " and ") + name_of(g.phase);
        if (g.phase == Phase::queued && !g.written) text += "+unwritten";
        if (g.phase == Phase::queued && g.tentative) text += g.staged ? "+staged" : "+unproved";
        text += name_of(g.ending);
        if (g.outstanding) text += "+reported";
        if (g.hold) text += "+held";
    }
    return text.empty() ? "gone" : text;
}

struct Word {
    std::string operator()(const Connect &) { return "connect"; }
    std::string operator()(const Disconnect &) { return "disconnect"; }
    std::string operator()(const Send &e) {
        const auto *r = std::get_if<wire::LaunchResult>(&e.message);
        if (r == nullptr) return "send";
        return r->ok ? "say:ok" : r->staged ? "say:staged" : std::string("say:") + name_of(static_cast<Code>(r->code));
    }
    std::string operator()(const WriteLaunch &) { return "write"; }
    std::string operator()(const ProveGrain &) { return "prove"; }
    std::string operator()(const StartGrain &) { return "start"; }
    std::string operator()(const RecallGrain &) { return "recall"; }
    std::string operator()(const CheckpointSignal &) { return "signal"; }
    std::string operator()(const ThrashSignal &) { return "warn"; }
    std::string operator()(const WatchHost &) { return "watch"; }
    std::string operator()(const TerminateGrain &) { return "TERM"; }
    std::string operator()(const KillGrain &) { return "KILL"; }
    std::string operator()(const WriteAcked &) { return "record:acked"; }
    std::string operator()(const WriteEnding &e) { return "record" + std::string(name_of(e.ending)); }
    std::string operator()(const RemoveDir &) { return "remove"; }
    std::string operator()(const Look &) { return "look"; }
    std::string operator()(const SendReport &e) {
        return std::string(e.ended             ? "report:end"
                           : e.checkpoint != 0 ? "report:checkpoint"
                                               : "report:usage") +
               (e.innocent ? "(innocent)"
                : e.limit  ? "(limit)"
                           : "");
    }
    std::string operator()(const PlaceFiles &) { return "place"; }
    std::string operator()(const KeepPiece &) { return "keep"; }
    std::string operator()(const DropPieces &) { return "drop"; }
    std::string operator()(const KeepOutputs &) { return "outputs"; }
    std::string operator()(const SendPiece &) { return "put"; }
    std::string operator()(const PeekOutput &) { return "peek"; }
    std::string operator()(const Gauge &e) { return e.boundary ? "call-in:boundary" : "call-in"; }
    std::string operator()(const SaveConfig &) { return "save"; }
    std::string operator()(const SetLogLevel &e) { return "log " + e.level; }
    std::string operator()(const Log &) { return ""; }
};
std::string done(Bench &b) {
    std::string text, last;
    for (const Effect &e : b.out) {
        const std::string word = std::visit(Word{}, e);
        if (!word.empty() && word != last) text += " " + word;  // repeated words once
        if (!word.empty()) last = word;
    }
    return text;
}

const DirFacts quiet = dir({{1, 10}}, {}, true);
wire::Launch a_launch(Incarnation incarnation, bool tentative) {
    wire::Launch m;
    m.key = wire::wire_of(id().key);
    m.incarnation = incarnation;
    m.argv = {"/bin/cat"};
    m.tentative = tentative;
    m.demands.wall_s = 5;
    return m;
}
// The grain is incarnation 2 of its key; there is one slot, and no other grain unless `busy`.
struct Start {
    const char *name;
    void (*bring)(Bench &b);
};
const GrainId it = id(1, 2), other = id(9);
void queued_behind(Bench &b, bool tentative) {
    b.run_grain(other);
    b.message(a_launch(2, tentative));
    b.in(LaunchWritten{it});
}
void running(Bench &b) {
    b.message(a_launch(2, false));
    b.in(LaunchWritten{it});
    b.in(GrainStarted{it});
    b.in(Looked{it, quiet});
}
void ended(Bench &b) {
    running(b);
    ExitFacts e;
    e.known = true;
    b.in(GrainExited{it, e});
}
const Start starting_points[] = {
    {"unknown", [](Bench &) {}},
    {"unwritten", [](Bench &b) { b.message(a_launch(2, false)); }},
    {"queued", [](Bench &b) { queued_behind(b, false); }},
    {"unproved", [](Bench &b) { queued_behind(b, true); }},
    {"staged",
     [](Bench &b) {
         queued_behind(b, true);
         b.in(GrainProved{it});
     }},
    {"starting",
     [](Bench &b) {
         b.message(a_launch(2, false));
         b.in(LaunchWritten{it});
     }},
    {"running", running},
    {"asked",
     [](Bench &b) {
         running(b);
         b.withdraw(it, false, "busy");
         b.in(Looked{it, quiet});
     }},
    {"terminated",
     [](Bench &b) {
         running(b);
         b.withdraw(it, false, "busy");
         b.in(Looked{it, dir({{1, 10}}, {}, false)});
     }},
    {"overrun",
     [](Bench &b) {
         running(b);
         b.pass(seconds_of(5.1));
     }},
    {"discarded",
     [](Bench &b) {
         running(b);
         b.withdraw(it, true, "gone");
     }},
    {"ended", ended},
    {"reported",
     [](Bench &b) {
         ended(b);
         b.in(Looked{it, quiet});
     }},
};

struct Event {
    const char *name;
    void (*happen)(Bench &b);
};
void ack(Bench &b, unsigned last, bool end, Verdict v) { b.ack(it, last, end, v); }
const Event events[] = {
    {"launched again", [](Bench &b) { b.message(a_launch(2, false)); }},
    {"launched newer", [](Bench &b) { b.message(a_launch(3, false)); }},
    {"launched older", [](Bench &b) { b.message(a_launch(1, false)); }},
    {"withdrawn", [](Bench &b) { b.withdraw(it, false, "needed"); }},
    {"discarded", [](Bench &b) { b.withdraw(it, true, "needed"); }},
    {"taken", [](Bench &b) { ack(b, 0, false, Verdict::taken); }},
    {"end taken", [](Bench &b) { ack(b, 1, true, Verdict::taken); }},
    {"had", [](Bench &b) { ack(b, 1, false, Verdict::have_it); }},
    {"stale", [](Bench &b) { ack(b, 0, false, Verdict::stale); }},
    {"later", [](Bench &b) { ack(b, 0, false, Verdict::later); }},
    {"written", [](Bench &b) { b.in(LaunchWritten{it}); }},
    {"not written",
     [](Bench &b) {
         b.in(LaunchUnwritten{it, Code::no_space, "full"});
     }},
    {"proved", [](Bench &b) { b.in(GrainProved{it}); }},
    {"started", [](Bench &b) { b.in(GrainStarted{it}); }},
    {"start failed",
     [](Bench &b) {
         b.in(StartFailed{it, Code::not_found, false, "no"});
     }},
    {"no slot",
     [](Bench &b) {
         b.in(StartFailed{it, Code::limit, true, "held"});
     }},
    {"exited",
     [](Bench &b) {
         b.in(GrainExited{it, ExitFacts{true, 0, 0, false, "", {}}});
     }},
    {"looked",
     [](Bench &b) {
         b.in(Looked{it, quiet});
     }},
    {"checkpoint",
     [](Bench &b) {
         b.in(Looked{it, dir({{1, 10}, {2, 0}}, {{1, 5}})});
     }},
    {"unreadable",
     [](Bench &b) {
         b.in(ReportUnsendable{it, ReportUnsendable::Why::unreadable, 0, "bad"});
     }},
    {"other exited",
     [](Bench &b) {
         b.in(GrainExited{other, {}});
     }},
    {"launcher new",
     [](Bench &b) {
         b.in(LauncherDown{});
         b.in(LauncherUp{});
     }},
    {"link lost", [](Bench &b) { b.in(LinkClosed{"x"}); }},
    {"link back",
     [](Bench &b) {
         b.in(LinkClosed{"x"});
         b.pass(milliseconds(300));
         b.clear();
         b.in(LinkOpened{});
         b.message(wire::Configure{9, 1, 1});
     }},
    {"time over", [](Bench &b) { b.pass(seconds(6)); }},
    {"25 s later", [](Bench &b) { b.pass(seconds(25)); }},
};
}  // namespace

TEST_CASE("what becomes of a grain in every state, whatever happens: life_table.txt") {
    std::ifstream file(DCS_SOURCE_DIR "/tests/unit/grainserver/life_table.txt");
    int cells = 0;
    for (const Start &start : starting_points)
        for (const Event &event : events) {
            Bench b;
            b.connect(9, 1);
            b.in(LauncherUp{});
            start.bring(b);
            b.clear();
            event.happen(b);
            char head[64];
            std::snprintf(head, sizeof head, "%-12s %-16s ", start.name, event.name);
            std::string expected;
            do std::getline(file, expected);
            while (file && (expected.empty() || expected[0] == '#'));
            CHECK(head + state_of(b.state) + ":" + done(b) == expected);
            ++cells;
        }
    REQUIRE(cells == static_cast<int>(std::size(starting_points) * std::size(events)));
    std::string rest;
    REQUIRE_FALSE(std::getline(file, rest));
}
