#pragma once
// What a change means for its session's event log (wire/event_log.h). The log is derived from the very changes that
// a turn makes durable, so the two cannot part.
#include "scheduler/state/decision.h"
#include "wire/event_log.h"

namespace dcs::record {

// `before`: the State that the change is about to be applied to. A volatile change means nothing.
void note_session(wire::EventFrame &events, const core::State &before, const core::SetSession &change);
void note_grain(wire::EventFrame &events, const core::State &before, const core::SetGrain &change);
void note_erased(wire::EventFrame &events, const core::EraseGrain &change);

}  // namespace dcs::record
