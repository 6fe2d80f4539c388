#include "scheduler/record/events.h"

#include "base/planted.h"

namespace dcs::record {
namespace {

using core::Grain;
using core::GrainStatus;
using wire::EventKind;

wire::Event about(EventKind kind, GrainNumber grain = -1) {
    wire::Event e;
    e.kind = kind;
    e.grain = grain;
    return e;
}

wire::Event counted(EventKind kind, std::int64_t number, GrainNumber grain = -1) {
    wire::Event e = about(kind, grain);
    e.number = static_cast<std::uint32_t>(number);
    return e;
}

// Why it is no longer where `old` was: noted with the change itself, or when it was ordered.
void note_left(wire::EventFrame &events, const core::State &state, GrainNumber number, const Grain &old,
               const Grain &now) {
    wire::Event e = about(EventKind::left, number);
    DCS_REQUIRE(old.lessee != core::no_host, "a grain leaves a host");
    e.host = state.host_name(old.lessee);
    const std::vector<core::Move> &moves = now.course->moves;
    if (!moves.empty() && moves.back().incarnation == old.lease) {
        e.text = core::name_of(moves.back().reason);
        e.detail = moves.back().detail;
    }
    events.add(e);
}

void note_start(wire::EventFrame &events, const core::State &state, GrainNumber number, const Grain &now) {
    DCS_REQUIRE(now.lease > 0 && now.lessee != core::no_host, "a grain starts on a host, under a lease");
    wire::Event e = counted(EventKind::started, now.lease, number);
    e.host = state.host_name(now.lessee);
    events.add(e);
}

void note_end(wire::EventFrame &events, GrainNumber number, const Grain &now) {
    const auto &end = now.as<core::Finished>();
    wire::Event e = counted(EventKind::finished, end.result_index, number);
    e.code = end.exit_code;
    e.signal = end.signal;
    events.add(e);
}

}  // namespace

void note_session(wire::EventFrame &events, const core::State &before, const core::SetSession &change) {
    const core::Session *session = before.session(change.key);
    const core::SessionInfo &now = change.info;
    const bool active = now.status == core::SessionStatus::active;
    if (!session) {
        wire::Event e = about(active ? EventKind::opened : EventKind::imported);
        e.text = active ? now.ident : "";
        events.add(e);
        if (now.shown > 0) events.add(counted(EventKind::handed_out, now.shown));
        return;
    }
    const core::SessionInfo &old = session->info;
    const bool was_active = old.status == core::SessionStatus::active;
    if (now.shown > old.shown && !planted("record.log_without_results"))
        events.add(counted(EventKind::handed_out, now.shown));
    if (now.shown < old.shown) events.add(counted(EventKind::set_back, now.shown));
    if (was_active && !active) events.add(about(EventKind::closed));
    if (!was_active && active) events.add(about(EventKind::reopened));
    if (was_active && active && now.open_request != old.open_request) events.add(about(EventKind::resumed));
}

void note_grain(wire::EventFrame &events, const core::State &before, const core::SetGrain &change) {
    if (change.volatile_only) return;
    const GrainNumber number = change.key.grain;
    const Grain *old = before.grain(change.key);
    const Grain &now = change.grain;
    const bool runs = now.status() == GrainStatus::running;
    if (!old) {
        // Damaged, of which nothing is known but that it is killed now.
        events.add(about(now.status() == GrainStatus::killed ? EventKind::killed : EventKind::submitted, number));
        if (runs) note_start(events, before, number, now);
        return;
    }
    const bool ran = old->status() == GrainStatus::running;
    const bool over = now.is_over(), was_over = old->is_over();
    if (now.course->told > old->course->told) events.add(counted(EventKind::shown, now.course->told, number));
    const bool further = now.course->sequence > old->course->sequence && !over;
    const bool late = further && !ran;  // a report of a lease that was forgiven
    if (further) {
        if (late) note_start(events, before, number, *old);
        events.add(counted(EventKind::checkpoint, now.course->sequence, number));
        if (late && !runs) note_left(events, before, number, *old, now);
    }
    const bool elsewhere = ran && runs && (now.lease != old->lease || now.runs_on() != old->runs_on());
    if (ran && !over && (!runs || elsewhere)) note_left(events, before, number, *old, now);
    if (runs && (!ran || elsewhere) && !late) note_start(events, before, number, now);
    if (now.status() == GrainStatus::finished && old->status() != GrainStatus::finished) {
        if (!ran && old->status() == GrainStatus::ready) note_start(events, before, number, *old);
        note_end(events, number, now);
    }
    if (now.status() == GrainStatus::killed && old->status() != GrainStatus::killed)
        events.add(about(EventKind::killed, number));
    if (was_over && now.status() == GrainStatus::ready) events.add(about(EventKind::undone, number));
}

void note_erased(wire::EventFrame &events, const core::EraseGrain &change) {
    events.add(about(EventKind::forgotten, change.key.grain));
}

}  // namespace dcs::record
