// The ends of grains: by themselves, withdrawn, over a limit, or discarded.
#include <algorithm>

#include "base/planted.h"
#include "base/require.h"
#include "grainserver/core/turn.h"

namespace dcs::server {
namespace {
constexpr Duration look_for_checkpoint = milliseconds(100);
constexpr std::int32_t signal_time = 24;  // SIGXCPU: the closest signal for a run that is too long

void terminate(Turn &t, const GrainId &id, Grain &g) {
    DCS_REQUIRE(g.phase == Phase::running, "a signal needs a process");
    g.ending = Ending::terminated;
    g.act_at = t.now + kill_after;
    // Before the signal: see Ending in files/grain_record.h.
    t.emit(WriteEnding{id, Ending::terminated, g.reason, 0, g.given_back});
    t.emit(TerminateGrain{id});
}

// A grain that was terminated ends innocently, and may run as long again elsewhere.
void too_long(Turn &t, const GrainId &id, Grain &g) {
    g.wall_at = Instant::never();
    if (g.ending != Ending::none && g.ending != Ending::asked) return;
    overrun(t, id, g,
            "the grain ran longer than its " + std::to_string(g.wall_s) + " s; submit it with a longer --time",
            signal_time);
}

// A limit that the launcher enforces. A grain that was terminated ends innocently, as in too_long().
void take_limit(Turn &t, const GrainId &id, Grain &g) {
    DCS_REQUIRE(g.exit.has_value(), "the launcher has said how it ended");
    if (g.exit->limit_signal == 0 || (g.ending != Ending::none && g.ending != Ending::asked)) return;
    t.log(Level::warning, to_text(id) + ": " + g.exit->reason);
    g.ending = Ending::overrun;
    g.reason = g.exit->reason;
    g.limit_signal = g.exit->limit_signal;
    g.outstanding.reset();
}

void erase_dir(Turn &t, const GrainId &id) {
    t.emit(RemoveDir{id});
    t.forget(id);
}
}  // namespace

void withdraw(Turn &t, const wire::Withdraw &w) {
    const GrainId id{wire::key_of(w.key), w.incarnation};
    Grain *g = t.find(id);
    if (w.discard) {
        if (g != nullptr) discard(t, id, w.reason, Farewell::signal);
        return;
    }
    if (g == nullptr || g->phase == Phase::queued) {
        // Nothing runs, and nothing will: reported, because the scheduler would wait for an end.
        if (g != nullptr) erase_dir(t, id);
        if (t.state.with_scheduler())
            t.emit(Send{wire::LaunchResult{w.key, w.incarnation, false, false, static_cast<std::int32_t>(Code::refused),
                                           "withdrawn before it ran: " + w.reason}});
        return;
    }
    if (w.only_if_waiting && !planted("server.calls_back_started")) {
        if (waits_there(t.state, *g) && g->ending == Ending::none)
            call_back(t, id, *g, Code::refused, "withdrawn before it ran: " + w.reason);
        return;
    }
    if (g->phase == Phase::ended || g->ending != Ending::none) return;
    t.log(Level::info, to_text(id) + " is withdrawn: " + w.reason);
    ask_to_end(t, id, *g, w.reason);
}

void ask_to_end(Turn &t, const GrainId &id, Grain &g, const std::string &reason, wire::GivenBack given_back) {
    DCS_REQUIRE(has_process(g), "only a process can be asked to end");
    DCS_REQUIRE(g.ending == Ending::none, "a grain has one reason for its end");
    g.ending = Ending::asked;
    g.reason = reason;
    g.given_back = given_back;
    t.emit(WriteEnding{id, Ending::asked, reason, 0, given_back});
    if (waits_there(t.state, g)) t.emit(RecallGrain{id});
    repeat_ending(t, id, g);
}

// Sends the signals of an ending for a running process; also to a launcher that has just connected.
void repeat_ending(Turn &t, const GrainId &id, Grain &g) {
    if (g.phase != Phase::running) return;
    switch (g.ending) {
    case Ending::none: return;
    case Ending::asked:
        g.checkpoint_before.reset();
        g.want_signal = true;
        g.term_at = t.now + (g.given_back == wire::GivenBack::shut_out
                                 ? courtesy::starved_checkpoint
                                 : std::clamp(t.state.interval / 3, last_checkpoint_min, last_checkpoint_max));
        g.act_at = g.term_at;
        t.emit(Look{id});
        return;
    case Ending::terminated: return terminate(t, id, g);
    case Ending::overrun:
    case Ending::discard:
        g.act_at = t.now + kill_after;
        t.emit(KillGrain{id});
        return;
    }
}

void withdraw_looked(Turn &t, const GrainId &id, Grain &g) {
    DCS_REQUIRE(g.phase == Phase::running && g.ending == Ending::asked, "it is waiting for a checkpoint");
    const std::uint32_t newest = g.facts.checkpoints.empty() ? 0 : g.facts.checkpoints.rbegin()->first;
    if (!g.checkpoint_before) g.checkpoint_before = newest;
    if (!g.facts.announced || newest > *g.checkpoint_before || t.now >= g.term_at) return terminate(t, id, g);
    g.act_at = std::min(t.now + look_for_checkpoint, g.term_at);
}

void discard(Turn &t, const GrainId &id, const std::string &reason, Farewell farewell) {
    Grain *g = t.find(id);
    if (g == nullptr || g->ending == Ending::discard) return;
    t.log(Level::info, to_text(id) + " is discarded: " + reason);
    if (!has_process(*g)) {
        erase_dir(t, id);
        return start_queued(t);
    }
    const bool has_signal = g->ending == Ending::terminated || g->ending == Ending::overrun;
    g->ending = Ending::discard;
    g->reason = reason;
    g->given_back = wire::GivenBack::no;
    g->limit_signal = 0;
    g->outstanding.reset();
    t.emit(WriteEnding{id, Ending::discard, reason});
    if (waits_there(t.state, *g)) t.emit(RecallGrain{id});
    if (farewell == Farewell::none || has_signal || g->phase != Phase::running) return repeat_ending(t, id, *g);
    g->act_at = t.now + kill_after;  // a program may remove what it has left elsewhere
    t.emit(TerminateGrain{id});
}

void overrun(Turn &t, const GrainId &id, Grain &g, const std::string &reason, std::int32_t signal) {
    DCS_REQUIRE(signal > 0, "a limit is reported as the signal that the system would have sent");
    if (g.ending == Ending::overrun || g.ending == Ending::discard) return;
    t.log(Level::warning, to_text(id) + ": " + reason);
    g.ending = Ending::overrun;
    g.reason = reason;
    g.given_back = wire::GivenBack::no;
    g.limit_signal = signal;
    g.outstanding.reset();
    t.emit(WriteEnding{id, Ending::overrun, reason, signal});
    repeat_ending(t, id, g);
}

void lose(Turn &t, const GrainId &id, const std::string &reason, Code code) {
    t.log(Level::warning, to_text(id) + " is given up: " + reason);
    const bool told = t.state.with_scheduler();
    if (told)
        t.emit(Send{wire::LaunchResult{wire::wire_of(id.key), id.incarnation, false, false,
                                       static_cast<std::int32_t>(code), reason}});
    discard(t, id, reason);
    if (!told) reconnect(t);  // the next FirstCall omits it
}

void exited(Turn &t, const GrainExited &x) {
    Grain *g = t.find(x.id);
    if (g == nullptr || g->phase == Phase::ended) return;
    if (g->ending == Ending::discard) {
        erase_dir(t, x.id);
        return start_queued(t);
    }
    DCS_REQUIRE(!g->exit, "a grain ends once");
    g->phase = Phase::ended;
    g->called_back.reset();
    g->held.reset();
    g->exit = x.facts;
    take_limit(t, x.id, *g);
    g->by_engine = is_engines(t.state, *g);
    g->cpu_us = std::max(g->cpu_us, x.facts.usage.user_us + x.facts.usage.system_us);
    g->act_at = g->answer_at = g->signal_at = g->look_at = g->wall_at = Instant::never();
    g->hold = false;
    t.emit(Look{x.id});
    start_queued(t);
}

Instant wall_end(const Grain &g, Instant since) { return g.wall_s > 0 ? since + seconds(g.wall_s) : Instant::never(); }

void ending_tick(Turn &t) {
    t.for_due([&](const GrainId &id, Grain &g) {
        if (t.now >= g.wall_at) too_long(t, id, g);
        if (t.now < g.act_at) return;
        g.act_at = Instant::never();
        if (g.phase != Phase::running) return;
        if (g.ending == Ending::asked) {
            t.emit(Look{id});
            g.act_at = t.now + look_for_checkpoint;
        } else if (g.ending != Ending::none) {
            g.act_at = t.now + kill_after;
            t.emit(KillGrain{id});
        }
    });
}

void adopted(Turn &t, const Adopted &a) {
    Grain g{.written = !a.to_place || a.started || a.exit};
    take_files(g, a.files);
    g.content.recorded = true;
    g.content.to_place = !g.written;
    g.order = t.state.next_order++;
    g.large = a.large;
    g.notice = a.notice;
    g.next_seq = a.next_seq;
    g.acked = std::max(a.acked, a.next_seq - 1);
    g.wall_s = a.wall_s;
    g.ending = a.ending;
    g.reason = a.reason;
    if (a.ending == Ending::asked || a.ending == Ending::terminated) g.given_back = a.given_back;
    if (a.ending == Ending::overrun) g.limit_signal = a.limit_signal;
    if (a.exit) {
        g.phase = Phase::ended;
        g.exit = a.exit;
        take_limit(t, a.id, g);
        g.cpu_us = a.exit->usage.user_us + a.exit->usage.system_us;
    } else if (a.started) {
        g.phase = Phase::running;
        g.began = std::min(a.since, t.now);
        g.wall_at = wall_end(g, g.began);
    } else {
        g.phase = Phase::queued;
        g.tentative = a.tentative;
        g.give_up_start = give_up_at(t, g);
        g.ending = Ending::none;
        g.given_back = wire::GivenBack::no;
        g.limit_signal = 0;
    }
    if (a.ending == Ending::discard && g.phase != Phase::running) {
        t.emit(RemoveDir{a.id});
        return;
    }
    if (g.phase == Phase::ended && a.outputs) {
        g.content.outputs = a.outputs;
        g.content.output_words = a.output_words;
        put_again(g);
    }
    const bool queued = g.phase == Phase::queued;
    t.add(a.id, std::move(g));
    if (a.started && !a.exit) courtesy_begins(t);
    if (!queued) t.emit(Look{a.id});  // before the first call, which states how long it has run
}

}  // namespace dcs::server
