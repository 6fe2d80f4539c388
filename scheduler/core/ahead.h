#pragma once
// Grains handed to a host ahead of its free slots.
#include "scheduler/core/decisions.h"

namespace dcs::core {

// The leases there that hold slots. Those that wait start before the server says so.
std::size_t on_slots(const State &state, HostId id);
// A grain has ended there.
void note_pace(Draft &d, HostId id);
// All slots are taken, and it may be given one more to wait there.
bool may_lead(const State &state, HostId id);
// One grain, if there is one; then the next.
void fill_ahead(Draft &d, HostId id);
// For a ready grain that found no free slot: what waits where it could run, and comes after it, is called back.
void recall_for_older(Draft &d, const GrainKey &key, const Grain &grain);
// The session has another place from now on, or its user is denied: what waits of it comes back.
void recall_of(Draft &d, const SessionKey &session, const std::string &why);
// For a free slot that found no ready grain: half of what waits on another host comes back.
void recall_for_idle(Draft &d, HostId idle);
void recall_all(Draft &d, HostId id, const std::string &why);
// It has not started there and was, or may have been, called back.
bool called_back(const Draft &d, HostId id, const Grain &grain);
// No slot became free for it: grains there run longer than they did.
void slowed_down(Draft &d, const GrainKey &key, HostId id);

}  // namespace dcs::core
