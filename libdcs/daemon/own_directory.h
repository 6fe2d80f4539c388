#pragma once
// The directory that a daemon with a backing store has for itself.
#include <string>

#include "base/status.h"
#include "locks/dcs_atoms.h"

namespace dcs {

struct OwnDirectory {
    std::string state;                  // DIR/state, where the store is
    locks::AdaptiveLock daemon, store;  // held for life
};

// Makes DIR and DIR/state if they are missing, for this account only, and takes DIR/lock and DIR/state/lock; the second
// guards the store against a daemon of another DIR that links to it. `who`: "scheduler". Errors: refused if another
// one works there or, for root, another user could have written there (trusted_path.h); else why it
// could not be.
Result<OwnDirectory> take_own_directory(const std::string &directory, locks::DcsAtom daemon, locks::DcsAtom store,
                                        const std::string &who);

}  // namespace dcs
