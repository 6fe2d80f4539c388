#pragma once
// Claims of this user's programs on this host to sessions of a pool: a kernel lock on one byte per session, all in one
// file, so that files do not multiply with sessions. The kernel drops a claim with its process. Other hosts do not see
// the claims.
#include <string>

#include <sys/types.h>

#include "locks/files/lock_file.h"

namespace dcs::locks {

class SessionClaims {
public:
    // The claims in DIRECTORY/maps.lock; or, if the user cannot write the pool's directory, in the user's lock
    // directory, where `pool` identifies the pool. Both create the file if it is missing.
    static Result<SessionClaims> open_in(const std::string &directory);
    static Result<SessionClaims> open_for(const std::string &pool);

    // Excludes other programs while the caller looks for its session and claims it. Held until leave(). False: the
    // deadline came first.
    Result<bool> enter(const Deadline &until) const;
    void leave() const;

    // Held until this process ends or this object is destroyed. False: another process has it at the deadline.
    Result<bool> take(int session, const Deadline &until) const;
    // The pid of the holder. 0: not claimed; -1: not known.
    pid_t holder(int session) const;

private:
    static Result<SessionClaims> open(const Place &place);
    explicit SessionClaims(LockFile file) : file_(std::move(file)) {}
    LockFile file_;
};

}  // namespace dcs::locks
