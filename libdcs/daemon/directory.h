#pragma once
// The directory of a daemon, which no one else uses or could have written to.
#include <string>

#include "base/instant.h"
#include "base/status.h"
#include "locks/dcs_atoms.h"

namespace dcs {

// Of a daemon with a backing store.
struct OwnDirectory {
    std::string state;                  // DIR/state, where the store is
    locks::AdaptiveLock daemon, store;  // held for life
};

// Makes DIR and DIR/state if they are missing, for this account only, and takes DIR/lock and DIR/state/lock; the second
// guards the store against a daemon of another DIR that links to it. `who`: "scheduler". Errors: refused if another
// one works there or, for root, another user could have written there (base/trusted_path.h); else why it
// could not be.
Result<OwnDirectory> take_own_directory(const std::string &directory, locks::DcsAtom daemon, locks::DcsAtom store,
                                        const std::string &who);

// Looks every few seconds whether the directory of a daemon's lock was removed (locks::was_removed()).
class RemovalWatch {
public:
    explicit RemovalWatch(const locks::AdaptiveLock &lock) : lock_(lock) {}
    bool removed();
    Instant next() const { return next_; }

private:
    const locks::AdaptiveLock &lock_;
    Instant next_{};
};

}  // namespace dcs
