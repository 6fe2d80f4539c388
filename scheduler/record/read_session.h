#pragma once
// One session from its files, verified.
#include "scheduler/record/session_on_disk.h"
#include "store/store.h"

namespace dcs::record {

// `known`: the hosts that the State has. It stays as it is during the call.
Result<SessionOnDisk> read_session(store::Store &store, const SessionKey &key, const HostNames::Known &known);

}  // namespace dcs::record
