#pragma once
// A grain server's core on a table: scripted time, inputs in, effects out; the directory of a grain is
// a DirFacts that the test holds.
#include <string>
#include <vector>

#include "grainserver/core/step.h"
#include "grainserver/core/turn.h"
#include "support/catch.h"
#include "support/server_check.h"

namespace bench {

using namespace dcs;
using namespace dcs::server;

inline GrainId id(int grain = 1, unsigned incarnation = 1) { return GrainId{{{"ann", 3}, grain}, incarnation}; }

struct Bench {
    State state;
    Instant now{seconds(1000).ns};
    double jitter = 0.5;
    std::vector<Effect> out;

    Bench() {
        state.host = "h1";
        state.boot_id = "boot";
        state.instance = 7;
    }
    void in(Input input) {
        for (Effect &e : step(state, now, jitter, std::move(input))) out.push_back(std::move(e));
        REQUIRE(check(state) == "");
    }
    void message(wire::AnyMessage m) { in(FromScheduler{std::move(m)}); }
    void wait(Duration d) { now = now + d; }
    // Lets the time pass and ticks at every deadline on the way.
    void pass(Duration d) {
        const Instant end = now + d;
        for (int ticks = 0; next_deadline(state) <= end; ++ticks) {
            REQUIRE(ticks < 10'000);  // a deadline that its Tick does not move would spin
            now = std::max(now, next_deadline(state));
            in(Tick{});
        }
        now = end;
    }
    template <class T> std::vector<T> take() {
        std::vector<T> found;
        std::vector<Effect> rest;
        for (Effect &e : out)
            if (T *x = std::get_if<T>(&e)) found.push_back(std::move(*x));
            else rest.push_back(std::move(e));
        out = std::move(rest);
        return found;
    }
    template <class T> T one() {
        std::vector<T> found = take<T>();
        REQUIRE(found.size() == 1);
        return std::move(found[0]);
    }
    template <class T> bool none() { return take<T>().empty(); }
    template <class M> std::vector<M> sent() {
        std::vector<M> found;
        std::vector<Effect> rest;
        for (Effect &e : out) {
            Send *s = std::get_if<Send>(&e);
            M *m = s ? std::get_if<M>(&s->message) : nullptr;
            if (m) found.push_back(std::move(*m));
            else rest.push_back(std::move(e));
        }
        out = std::move(rest);
        return found;
    }
    void clear() { out.clear(); }

    // Up and configured.
    void connect(double interval_s = 9, int slots = 2) {
        if (state.link == Link::down) in(Began{});
        in(LinkOpened{});
        message(wire::Configure{interval_s, slots, 1});
        in(Gauged{});
        clear();
    }
    static wire::Launch launch_of(GrainId g, int notice = 0, unsigned next_seq = 1) {
        wire::Launch m;
        m.key = wire::wire_of(g.key);
        m.incarnation = g.incarnation;
        m.argv = {"/bin/cat"};
        m.input = "input";
        m.demands.notice = notice;
        m.next_seq = next_seq;
        return m;
    }
    void launch(GrainId g, int notice = 0, unsigned next_seq = 1) { message(launch_of(g, notice, next_seq)); }
    void run_grain(GrainId g, int notice = 0, unsigned next_seq = 1) {
        if (!state.launcher_up) in(LauncherUp{});
        launch(g, notice, next_seq);
        in(LaunchWritten{g});
        in(GrainStarted{g});
        REQUIRE(state.grains.at(g).phase == Phase::running);
        clear();
    }
    // Answers the looks that were asked for.
    void look(const GrainId &g, const DirFacts &facts) {
        REQUIRE_FALSE(take<Look>().empty());
        in(Looked{g, facts});
    }
    void exit(const GrainId &g, const DirFacts &facts, ExitFacts e) {
        e.known = true;
        in(GrainExited{g, e});
        look(g, facts);
    }
    void ack(const GrainId &g, unsigned last, bool ended, wire::Verdict verdict) {
        message(wire::ReportAck{wire::wire_of(g.key), g.incarnation, last, ended, verdict});
    }
    void withdraw(const GrainId &g, bool discarded, const std::string &reason) {
        message(wire::Withdraw{wire::wire_of(g.key), g.incarnation, discarded, reason});
    }
};

inline DirFacts dir(std::map<unsigned, std::uint64_t> increments, std::map<unsigned, std::uint64_t> checkpoints = {},
                    bool announced = true) {
    DirFacts f;
    f.announced = announced;
    for (auto [k, n] : increments) f.increments[k] = n;
    for (auto [k, n] : checkpoints) f.checkpoints[k] = n;
    return f;
}

}  // namespace bench
