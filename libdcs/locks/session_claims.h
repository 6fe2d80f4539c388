#pragma once
// Which sessions of a pool programs of this user on this host work for at this moment: a kernel lock on one byte for
// each, all in one file, so that files do not multiply with sessions. The kernel drops a claim with its process. Other
// hosts do not see it.
#include <string>

#include <sys/types.h>

#include "locks/lock_file.h"

namespace dcs::locks {

class SessionClaims {
public:
    // In the file DIRECTORY/maps.lock; or, for a pool in whose directory the user cannot write, in the user's lock
    // directory, where `pool` tells one pool from another. Both make the file if it is missing.
    static Result<SessionClaims> open_in(const std::string &directory);
    static Result<SessionClaims> open_for(const std::string &pool);

    // One program at a time looks for its session and claims it: between the two no other one may do so. Held until
    // leave(). False when the deadline comes first.
    Result<bool> enter(const Deadline &until) const;
    void leave() const;

    // Held until this process ends or this object goes. False: another process has it when the deadline comes.
    Result<bool> take(int session, const Deadline &until) const;
    // Who has it. 0: no process; -1: one that cannot be named.
    pid_t holder(int session) const;

private:
    static Result<SessionClaims> open(const Place &place);
    explicit SessionClaims(LockFile file) : file_(std::move(file)) {}
    LockFile file_;
};

}  // namespace dcs::locks
