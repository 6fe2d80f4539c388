#pragma once
// What State derives from its entities, kept in step by apply.cc: each function takes one entity's
// share out or puts it in, so that putting an entity back undoes all of its consequences.
#include "scheduler/state/seniority.h"
#include "scheduler/state/state.h"

namespace dcs::core {

// What an active session counts for outside of itself; nothing if it is terminated.
void count_session(State &state, const SessionKey &key, const Session &session, bool in);
void count_grain(State &state, Session &session, const GrainKey &key, const Grain &g, bool in);
// The part of count_grain that concerns the host of a running grain.
void run_there(State &state, const GrainKey &key, const Grain &g, bool in);
// The parts that concern State::resting and circling, of all grains of a session.
void note_returns(State &state, const SessionKey &key, const Session &session, bool in);
void note_waiters(State &state, const SessionKey &key, const std::vector<Waiter> &waiters, bool in);
void index_host(State &state, HostId id, const Host &host, bool in);
// Whose contents the library must keep.
void count_files(State &state, const std::string &user, const Grain &g, bool in);
// What it takes on the disk besides its share of the session's own files.
std::uint64_t stored_by(const Grain &g);
std::uint64_t stored_by(const SessionInfo &info);  // and the session's own files
// The same of a whole session, out of what its user has or into it.
void count_stored(State &state, const SessionKey &key, std::uint64_t bytes, bool in);
void refresh_open(State &state, HostId id);
void refresh_unpacked(State &state, const SessionKey &key, const Session &session);

}  // namespace dcs::core
