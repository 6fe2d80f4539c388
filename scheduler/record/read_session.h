#pragma once
// One session from its files, verified.
#include <vector>

#include "scheduler/record/session_on_disk.h"
#include "store/store.h"

namespace dcs::record {

// `known`: the hosts that the State has. It stays as it is during the call.
Result<SessionOnDisk> read_session(store::Store &store, const SessionKey &key, const HostNames::Known &known);

// The log of the session's grains, into `session`, whose info is known. Of each grain the last record counts; only that
// one is decoded. The log of a large session is verified and decoded on several threads.
// `own_trees`: grains that have no more there than that they have a tree of their own; they are in no other list yet.
Status read_log(store::Store &store, const SessionKey &key, SessionOnDisk &session,
                std::vector<core::Grains::iterator> &own_trees);

// Its place in the order of results becomes the grain's. Places may be taken by several threads.
Status take_place(const SessionKey &key, std::vector<GrainNumber> &results, GrainNumber number, const core::Grain &g);

}  // namespace dcs::record
