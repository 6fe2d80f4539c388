// What is reported, in which order, and the effect of an answer.
#include <algorithm>
#include <utility>

#include "base/limits.h"
#include "base/planted.h"
#include "base/require.h"
#include "grainserver/core/turn.h"

namespace dcs::server {
namespace {
constexpr int exit_write_error = 74;           // D_EXIT_WRITE_ERROR of grainlib.h
constexpr int exit_again = 85;                 // D_EXIT_AGAIN
constexpr std::int32_t signal_file_size = 25;  // SIGXFSZ: the closest signal for too much output
constexpr int unreadable_max = 4;
constexpr int bad_max = 4;

std::uint64_t bytes_of(const Grain &g, std::uint32_t first, std::uint32_t last) {
    std::uint64_t sum = 0;
    for (auto it = g.facts.increments.lower_bound(first); it != g.facts.increments.end() && it->first <= last; ++it)
        sum += it->second;
    return sum;
}

// The last increment that follows the acknowledged ones without a gap.
std::uint32_t last_increment(const Grain &g) {
    std::uint32_t last = g.acked;
    DCS_REQUIRE(g.acked != UINT32_MAX, "UINT32_MAX is never acknowledged");
    while (g.facts.increments.count(last + 1) != 0) ++last;
    return last;
}

// The newest checkpoint that is valid and whose increments all exist; 0: none. Where the last few are not valid, those
// before them are not tried: each try reads a checkpoint whole.
std::uint32_t newest_checkpoint(const Grain &g) {
    const std::uint32_t last = last_increment(g);
    int bad = 0;
    for (auto it = g.facts.checkpoints.rbegin(); it != g.facts.checkpoints.rend() && bad < bad_max; ++it) {
        if (it->first <= g.acked || it->first > last) continue;
        if (g.bad_checkpoints.count(it->first) == 0) return it->first;
        ++bad;
    }
    return 0;
}

std::string limit_words(const char *when) {
    return "the grain wrote more than " + std::to_string(limits::report_bytes >> 20) + " MiB " + when +
           ", its checkpoint included; let it write long output to a file, which --output brings back, and keep its "
           "state smaller";
}

std::string count_words() {
    return "the grain has more than " + std::to_string(increments_max) +
           " increments of output that are not reported; let it take a checkpoint only when it is time for one";
}

void too_much(Turn &t, const GrainId &id, Grain &g) {
    overrun(t, id, g, g.facts.too_many ? count_words() : limit_words("between two checkpoints"), signal_file_size);
}

// Ends a running grain beyond the limit at once, before it fills the disk.
void check_limits(Turn &t, const GrainId &id, Grain &g) {
    const std::uint32_t checkpoint = newest_checkpoint(g);
    if (g.facts.too_many) return checkpoint == 0 ? too_much(t, id, g) : lose(t, id, count_words(), Code::limit);
    const std::uint64_t tail = bytes_of(g, checkpoint != 0 ? checkpoint + 1 : g.acked + 1, UINT32_MAX);
    if (tail > limits::report_bytes) return too_much(t, id, g);
    if (checkpoint == 0) return;
    const std::uint64_t pile = bytes_of(g, g.acked + 1, checkpoint) + g.facts.checkpoints.at(checkpoint);
    if (pile <= limits::report_bytes) return;
    if (checkpoint == g.acked + 1) return too_much(t, id, g);
    lose(t, id, limit_words("while the scheduler accepted no reports"), Code::limit);
}

// The two exit codes have a meaning for a grain that uses the grain protocol. For any other program they are ordinary
// results: 74 is EX_IOERR of sysexits.h.
bool ended_with(const Grain &g, std::int32_t mark) {
    DCS_REQUIRE(g.exit.has_value(), "only an ended grain has an exit code");
    return g.exit->known && !g.exit->innocent && g.exit->signal == 0 && g.exit->code == mark;
}

// Checkpoints are sent first, so a valid one of this run is acknowledged by now.
bool took_checkpoint(const Grain &g) { return g.acked >= g.next_seq; }

bool could_not_write(const Grain &g) {
    return ended_with(g, exit_write_error) && (g.facts.announced || took_checkpoint(g));
}

bool asks_again(const Grain &g) { return ended_with(g, exit_again) && took_checkpoint(g); }

// What could not be written may fit by now: another grain that could not has ended before, and its files are gone.
bool failed_by_full_disk(const Turn &t, const Grain &g) {
    const std::optional<Instant> &seen = t.state.full_seen;
    return (g.exit->code != 0 || g.exit->signal != 0) && seen && *seen >= g.began && t.now < *seen + full_disk_tells;
}

void put_mark(SendReport &report, const char *reason) {
    report.innocent = true;
    report.given_back = wire::GivenBack::by_itself;
    report.reason = reason;
}

// Describes the grain's end in the report.
void put_end(const Grain &g, bool too_much, SendReport &report) {
    DCS_REQUIRE(g.phase == Phase::ended && g.exit, "the last report is of a grain that has ended");
    report.ended = true;
    report.usage = g.exit->usage;
    report.exit_code = g.exit->code;
    report.signal = g.exit->signal;
    if (g.ending == Ending::overrun || too_much) {
        report.exit_code = 0;
        report.signal = g.ending == Ending::overrun ? g.limit_signal : signal_file_size;
        report.cut = report.limit = true;
        report.limit_of_host = g.ending == Ending::overrun && g.exit->limit_signal != 0;  // the launcher ended it
        report.reason = g.ending == Ending::overrun ? g.reason
                        : g.facts.too_many          ? count_words()
                                                    : limit_words("after its last checkpoint");
    } else if (g.ending == Ending::terminated && !planted("server.blame_the_withdrawn")) {
        report.innocent = true;
        report.reason = g.reason;
        report.given_back = g.given_back;
    } else if (!g.exit->known || g.exit->innocent) {
        report.innocent = true;
        report.reason = g.exit->reason;
    } else if (g.by_engine) {
        put_mark(report, "the batch system ends the job of this host");
    } else if (g.facts.disk_full && !planted("server.full_disk_is_no_matter")) {
        put_mark(report, "the disk of its host was full when it ended, or shortly before");
    } else if (could_not_write(g)) {
        put_mark(report, "the grain could not write its output on this host");
    } else if (asks_again(g)) {
        put_mark(report, "the grain asked to be restarted from its checkpoint");
    } else if (!g.facts.lost.empty() && g.exit->signal == 0 &&
               !planted("server.lost_output_is_none")) {  // a signal may have come before it had files
        report.limit = true;                              // it would do so on any host
        report.reason = "its output is lost: " + g.facts.lost;
        if (report.exit_code == 0) report.exit_code = exit_write_error;
    }
    if (report.innocent || !g.content.outputs) return;
    report.files = *g.content.outputs;
    if (g.content.output_words.empty()) return;
    if (!report.reason.empty()) report.reason += "; ";
    report.reason += g.content.output_words;
}

struct Planned {
    SendReport report;
    std::uint64_t bytes = 0;
    bool any = false;
};

// First the pending checkpoint, then, if the grain has ended, the rest.
Planned plan(const GrainId &id, const Grain &g) {
    Planned p;
    p.report.id = id;
    p.report.first = g.acked + 1;
    const bool wrote_too_much = g.ending == Ending::overrun && g.limit_signal == signal_file_size;
    const std::uint32_t checkpoint = wrote_too_much ? 0 : newest_checkpoint(g);
    if (checkpoint != 0) {
        p.report.last = p.report.checkpoint = checkpoint;
        p.report.usage = g.exit ? g.exit->usage : g.facts.usage;
        p.bytes = bytes_of(g, p.report.first, checkpoint) + g.facts.checkpoints.at(checkpoint);
        p.any = true;
    } else if (g.phase == Phase::ended && g.looked_after_end && outputs_are_there(g)) {
        p.report.last = last_increment(g);
        p.bytes = bytes_of(g, p.report.first, p.report.last);
        p.report.empty = p.bytes == 0;
        put_end(g, p.bytes > limits::report_bytes || g.facts.too_many, p.report);
        p.bytes = std::min<std::uint64_t>(p.bytes, limits::report_bytes);
        p.any = true;
    }
    return p;
}

// While the slots have work, the scheduler takes several ends in one turn and one commit.
bool leaves_later(Turn &t) {
    if (!t.state.with_scheduler() || t.now == t.state.last_group || !others_wait(t)) return false;
    if (t.now < t.state.last_group + report_pause) return true;
    t.state.last_group = t.now;
    return false;
}

void report_nothing(Turn &t, const GrainId &id, Grain &g) {
    DCS_REQUIRE(!g.outstanding, "a grain has at most one outstanding report");
    g.report_even_nothing = false;
    SendReport report{.id = id, .first = g.acked + 1, .last = g.acked, .usage = g.facts.usage};
    t.emit(std::move(report));
}
}  // namespace

bool innocent_end(const Grain &g) {
    if (!g.exit || g.ending == Ending::overrun) return false;
    return g.ending == Ending::terminated || !g.exit->known || g.exit->innocent || g.by_engine || could_not_write(g);
}

void consider_report(Turn &t, const GrainId &id, Grain &g) {
    if (t.state.link != Link::ready || t.state.leaving) return;
    if (g.outstanding || g.hold || g.ending == Ending::discard || !g.looked) return;
    Planned p = plan(id, g);
    if (!p.any) {
        if (g.report_even_nothing && g.phase == Phase::running) report_nothing(t, id, g);
        return;
    }
    DCS_REQUIRE(p.report.first == g.acked + 1 && p.report.last >= g.acked,
                "a report follows the acknowledged increments");
    settle(t);
    const std::uint64_t busy = t.state.derived.in_flight;
    if (busy != 0 && busy + p.bytes > in_flight_max) {  // sent when an answer frees capacity
        t.state.crowded.insert(id);
        return;
    }
    if (p.report.ended && leaves_later(t)) {
        t.state.grouped.insert(id);
        return;
    }
    g.report_even_nothing = false;
    g.outstanding = Outstanding{p.report.first, p.report.last, p.report.ended, p.bytes, t.now};
    t.touched.push_back(id);
    const bool ended = p.report.ended;
    const std::uint32_t last = p.report.last;
    t.emit(std::move(p.report));
    if (!ended && planted("core.sequence_gap")) {
        g.acked = last;
        t.emit(WriteAcked{id, last});
    }
    // An early call-in: a slot is free, and no grain here takes it.
    if (ended && t.state.with_scheduler() && t.state.derived.processes < t.state.slots) t.emit(Gauge{});
}

void report_tick(Turn &t) {
    if (t.state.grouped.empty() || t.now < t.state.last_group + report_pause) return;
    t.state.last_group = t.now;
    for (const GrainId &id : std::exchange(t.state.grouped, {}))
        if (Grain *g = t.find(id)) consider_report(t, id, *g);
}

bool others_wait(Turn &t) {
    settle(t);
    return !t.state.derived.queue.empty() || !t.state.derived.held.empty() || t.state.derived.processes > t.state.slots;
}

// There is less in flight.
void consider_crowded(Turn &t) {
    for (const GrainId &id : std::exchange(t.state.crowded, {}))
        if (Grain *g = t.find(id)) consider_report(t, id, *g);
}

void looked(Turn &t, Looked x) {
    Grain *g = t.find(x.id);
    if (g == nullptr || !has_process(*g)) {
        if (g == nullptr || g->phase != Phase::ended) return;
        g->looked_after_end = true;
    }
    for (const auto words : {&DirFacts::strange, &DirFacts::lost})
        if (!(x.facts.*words).empty() && x.facts.*words != g->facts.*words)
            t.log(Level::warning, to_text(x.id) + ": " + x.facts.*words);
    g->facts = std::move(x.facts);
    g->cpu_us = std::max(g->cpu_us, g->facts.usage.user_us + g->facts.usage.system_us);
    g->looked = true;
    if (g->facts.disk_full) t.state.full_seen = t.now;
    if (g->phase == Phase::ended && g->facts.disk_full) t.emit(Gauge{});
    if (g->phase == Phase::ended && failed_by_full_disk(t, *g)) g->facts.disk_full = true;
    if (g->ending == Ending::discard) return;
    if (g->phase == Phase::running) {
        if (g->ending != Ending::overrun) check_limits(t, x.id, *g);
        g = t.find(x.id);
        if (g == nullptr || g->ending == Ending::discard) return;
        const bool useful = g->ending == Ending::none || g->ending == Ending::asked;
        if (g->want_signal && g->facts.announced && useful) t.emit(CheckpointSignal{x.id});
        g->want_signal = false;
        if (std::exchange(g->want_warning, false) && g->facts.announced && g->ending == Ending::none)
            t.emit(ThrashSignal{x.id});
        if (g->ending == Ending::asked) withdraw_looked(t, x.id, *g);
    }
    consider_report(t, x.id, *g);
}

void acknowledged(Turn &t, const wire::ReportAck &ack) {
    const GrainId id{wire::key_of(ack.key), ack.incarnation};
    Grain *g = t.find(id);
    if (g == nullptr || g->ending == Ending::discard) return;
    if (ack.last_seq == UINT32_MAX) return;  // the highest number is never used
    if (ack.verdict == wire::Verdict::stale) return discard(t, id, "its lease is over");
    if (!ack.ended && (g->phase == Phase::queued || g->phase == Phase::starting)) return;  // it has reported nothing
    if (ack.verdict == wire::Verdict::later) {
        if (g->outstanding && g->outstanding->ended) put_again(*g);
        g->outstanding.reset();
        g->hold = true;
        return;
    }
    if (ack.ended) {
        t.log(Level::debug, to_text(id) + " is complete");
        if (g->phase != Phase::ended) return discard(t, id, "the scheduler has its result");
        t.emit(RemoveDir{id});
        t.forget(id);
        return consider_crowded(t);
    }
    if (ack.last_seq > g->acked) {
        g->acked = ack.last_seq;
        g->facts.increments.erase(g->facts.increments.begin(), g->facts.increments.upper_bound(g->acked));
        t.emit(WriteAcked{id, g->acked});
    }
    if (g->outstanding && ack.last_seq >= g->outstanding->first) {
        // The last report was acknowledged, but not as the last: an immediate repetition would not help.
        g->hold = g->outstanding->ended && ack.last_seq >= g->outstanding->last;
        g->unreadable = 0;
        g->outstanding.reset();
    }
    consider_report(t, id, *g);
    consider_crowded(t);
}

void unsendable(Turn &t, const ReportUnsendable &x) {
    Grain *g = t.find(x.id);
    if (g == nullptr) return;
    g->outstanding.reset();
    // Private pools log errors alone, and without it the author of a program sees nothing of this.
    t.log(x.why == ReportUnsendable::Why::bad_checkpoint ? Level::error : Level::warning,
          to_text(x.id) + ": " + x.text);
    switch (x.why) {
    case ReportUnsendable::Why::bad_checkpoint:
        g->bad_checkpoints.insert(x.checkpoint);
        if (g->phase == Phase::ended) consider_report(t, x.id, *g);  // else the next look tries the one before
        return;
    case ReportUnsendable::Why::too_big:
        if (g->ending == Ending::overrun && x.checkpoint != 0) {  // it ends in any case
            g->bad_checkpoints.insert(x.checkpoint);
            return consider_report(t, x.id, *g);
        }
        if (x.checkpoint > g->acked + 1)
            return lose(t, x.id, limit_words("while the scheduler accepted no reports"), Code::limit);
        too_much(t, x.id, *g);
        return consider_report(t, x.id, *g);
    case ReportUnsendable::Why::unreadable:
        g->hold = true;
        if (++g->unreadable >= unreadable_max) lose(t, x.id, "its files cannot be read");
    }
}

// A grain that is not here, or an incarnation that is over, has written nothing.
void peek(Turn &t, const wire::Peek &p) {
    const GrainId id{wire::key_of(p.key), p.incarnation};
    const Grain *g = t.find(id);
    const bool has = g != nullptr && (g->phase == Phase::running || g->phase == Phase::ended);
    if (has && g->ending != Ending::discard) t.emit(PeekOutput{id, p});
    else t.emit(Send{wire::Peeked{p.ticket, 0, {}}});
}

}  // namespace dcs::server
