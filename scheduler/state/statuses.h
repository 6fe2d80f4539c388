#pragma once
// Where grains, sessions and hosts stand, and why a grain left a host.
#include <cstdint>

namespace dcs::core {

enum class GrainStatus : std::uint8_t { ready, running, finished, killed };
enum class SessionStatus : std::uint8_t { active, terminated };
enum class HostStatus : std::uint8_t {
    unknown,  // in the table, has not called since the scheduler started
    active,
    delinquent,  // not heard of for call_in_alert
    dead         // not heard of for call_in_limit; its grains were moved
};
const char *name_of(GrainStatus s);
const char *name_of(SessionStatus s);
const char *name_of(HostStatus s);

// Why a grain left a host, or was not continued there. Recorded: never reordered, only appended.
enum class MoveReason : std::uint8_t {
    failed,        // ended by its own fault, with attempts left
    no_program,    // could not be started: its program is missing there, or cannot be executed
    start_failed,  // could not be started for a reason of the host's
    given_back,    // by the host: its owner, its memory, its disk; the detail says which
    usurped,       // for a grain of an older session
    host_dead,     // not heard of for its limit
    host_lost,     // the host came back without it
    host_removed,  // from the host table
    host_closed,   // its limit was set to 0
    gap,           // its reports left something out: it went back to its checkpoint
    restarted,     // by command
    session_closed,
    longer_copy,   // an older lease of it came back, and had run longer
    over_limit,    // finished so: it broke a limit that it would meet again anywhere; the detail says which
    shut_out,      // by the host: its owner's work left it hardly any processor time
    thrashed,      // by the host: it paged, or its memory ran out
    cannot_start,  // could not be started: its arguments, environment or working directory; the detail says which
    given_up,      // finished so: no host could start it, or it came back too often; the detail says what was last
    host_limit     // it broke a limit of this host's server, and other hosts permit more; the detail says which
};
inline constexpr int move_reasons = 19;
const char *name_of(MoveReason r);

}  // namespace dcs::core
