#pragma once
// Store -> State at the start of the scheduler. The result equals the State that was lost,
// but for what is volatile (connections, contacts, confirmed launches). Hosts that grains
// remember are known by name only (configured == false) until the host table names them.
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "scheduler/state/state.h"
#include "wire/session_calls.h"
#include "store/store.h"

namespace dcs::record {

struct Rebuilt {
    core::State state;
    // Sessions that do not verify: not in the State, their files untouched. The text names the
    // file and what is wrong with it.
    std::map<SessionKey, std::string> set_aside;
    // The same for people, and whatever else was found damaged (a foreign directory, the
    // authorization table): one line each.
    std::vector<std::string> reports;
    // What of it is not a session that was set aside, for `dcs doctor`.
    std::vector<wire::ProblemRow> problems;
};

// `now` becomes the last contact of every host that is interned here: grace after the start.
// Fails only when the store itself cannot be listed, or when sessions that verified contradict each other.
// `watcher` gets each session before any of its files is read.
using Watcher = std::function<void(const SessionKey &)>;
Result<Rebuilt> rebuild(store::Store &store, Instant now, const Watcher &watcher = {});

}  // namespace dcs::record
