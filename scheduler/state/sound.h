#pragma once
// What every decision leaves of an entity, whatever it decided. (What was read from a disk is checked by record/.)
#include "scheduler/state/state.h"

namespace dcs::core {

void require_sound(const Grain &g);
void require_sound(const SessionInfo &info);
void require_sound(const Host &host);
// Of a change that is volatile_only: what the record of the grain holds stays, but for the usage of this incarnation.
void require_as_recorded(const Grain *recorded, const Grain &now);

}  // namespace dcs::core
