#pragma once
// The log of a session's grains. Of each grain the last record counts; only that one is decoded. The log of a large
// session is verified and decoded on several threads.
#include <vector>

#include "scheduler/record/session_on_disk.h"
#include "store/store.h"

namespace dcs::record {

// Into `session`, whose info is known. `own_trees`: grains that have no more there than that they have a tree of their
// own; they are in no other list yet.
Status read_log(store::Store &store, const SessionKey &key, SessionOnDisk &session,
                std::vector<core::Grains::iterator> &own_trees);

// Its place in the order of results becomes the grain's. Places may be taken by several threads.
Status take_place(const SessionKey &key, std::vector<GrainNumber> &results, GrainNumber number, const core::Grain &g);

}  // namespace dcs::record
