// State::derived: what is known of all grains without looking through them.
#include <algorithm>

#include "base/require.h"
#include "grainserver/core/turn.h"

namespace dcs::server {
namespace {
bool may_start(const Grain &g) {
    const bool to_be_proved = g.tentative && !g.staged;
    return g.phase == Phase::queued && g.written && !to_be_proved && g.retry_start == Instant::never();
}

Instant deadline_of(const Grain &g) {
    Instant at = std::min(g.act_at, g.content.keep_again);
    if (g.phase == Phase::running) at = std::min({at, g.answer_at, g.signal_at, g.look_at, g.wall_at});
    if (waits_for_slot(g)) at = std::min({at, g.give_up_start, g.retry_start});
    if (g.phase == Phase::starting) at = std::min(at, g.give_up_start);
    return at;
}

Marks marks_of(const Grain &g) {
    Marks marks;
    marks.process = has_process(g);
    marks.ends = marks.process && g.ending == Ending::discard;
    marks.lingers = marks.ends && g.large;
    marks.files = g.content.declares || g.content.to_place || !g.content.missing.empty();
    if (g.held) marks.held = g.order;
    marks.writing = g.phase == Phase::queued && !g.held && !g.content.recorded;
    if (g.outstanding) marks.in_flight = std::max<std::uint64_t>(g.outstanding->bytes, 1);
    if (may_start(g)) marks.place = {!g.staged, g.order};
    marks.deadline = deadline_of(g);
    return marks;
}

void put(Derived &d, const GrainId &id, const Marks &marks) {
    d.processes += marks.process;
    d.ending += marks.ends;
    d.lingering += marks.lingers;
    d.writing += marks.writing;
    if (marks.held) d.held.emplace(*marks.held, id);
    d.in_flight += marks.in_flight;
    if (marks.files) d.files.insert(id);
    if (marks.place) d.queue.emplace(*marks.place, id);
    if (marks.deadline != Instant::never()) d.deadlines.emplace(marks.deadline, id);
}

void take(Derived &d, const GrainId &id, const Marks &marks) {
    DCS_REQUIRE(d.in_flight >= marks.in_flight && d.processes >= marks.process, "only what was put is taken");
    d.processes -= marks.process;
    d.ending -= marks.ends;
    d.lingering -= marks.lingers;
    d.writing -= marks.writing;
    if (marks.held) d.held.erase({*marks.held, id});
    d.in_flight -= marks.in_flight;
    if (marks.files) d.files.erase(id);
    if (marks.place) d.queue.erase({*marks.place, id});
    if (marks.deadline != Instant::never()) d.deadlines.erase({marks.deadline, id});
}
}  // namespace

std::vector<GrainId> Turn::due() {
    settle(*this);
    std::vector<GrainId> ids;
    for (const auto &[at, id] : state.derived.deadlines) {
        if (at > now) break;
        ids.push_back(id);
    }
    std::sort(ids.begin(), ids.end());
    return ids;
}

void Turn::add(const GrainId &id, Grain grain) {
    const bool fresh = state.grains.emplace(id, std::move(grain)).second;
    DCS_REQUIRE(fresh, "a lease is accepted once, and a directory adopted once");
    touched.push_back(id);
}

void Turn::forget(const GrainId &id) {
    const auto it = state.grains.find(id);
    DCS_REQUIRE(it != state.grains.end(), "a grain is forgotten once");
    take(state.derived, id, it->second.marks);
    state.crowded.erase(id);
    state.grouped.erase(id);
    state.grains.erase(it);
}

void settle(Turn &t) {
    for (const GrainId &id : t.touched) {
        const auto it = t.state.grains.find(id);
        if (it == t.state.grains.end()) continue;
        Marks now = marks_of(it->second);
        if (now == it->second.marks) continue;
        take(t.state.derived, id, it->second.marks);
        put(t.state.derived, id, now);
        it->second.marks = now;
    }
    t.touched.clear();
}

std::string check_derived(const State &state) {
    Derived again;
    for (const auto &[id, g] : state.grains) {
        if (marks_of(g) != g.marks) return to_text(id) + ": what is derived from it is out of date";
        put(again, id, g.marks);
    }
    return again == state.derived ? "" : "what is derived from the grains is not theirs";
}

}  // namespace dcs::server
