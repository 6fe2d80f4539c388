#pragma once
// How much one peer or user may load the scheduler with, so that it still serves the others. limits.h has the limits of
// things themselves.
#include <cstddef>
#include <cstdint>

namespace dcs::limits {

// Requests of one user that wait to be decided. A program waits for its answers; who sends so many at once without
// waiting would have others wait for his.
inline constexpr std::size_t queued_requests = 4096;
inline constexpr std::size_t queued_bytes = 64u << 20;
// Held in memory for the connections of one user of this host, or of one user of other hosts: messages of which a part
// has come, and answers that were not read yet. Three of the largest each way, and no peer fills the memory with
// thousands of halves.
inline constexpr std::size_t held_bytes = 128u << 20;
// Calls that wait for a result: of one session, where each thread of a control program has one, and of one user.
inline constexpr std::size_t parked_waits = 1024;
inline constexpr std::size_t parked_waits_per_user = 4096;
// With less free than this where the backing store lies, what grains of one user report is taken only while he has no
// more than his share; the servers keep it meanwhile.
inline constexpr std::uint64_t reports_leave_bytes = 256u << 20;
// Above this a connection is not read any more until its peer has read what it asked for.
inline constexpr std::size_t unread_bytes = 4u << 20;
// Connections that are kept for root, the scheduler's own account and other hosts.
inline constexpr std::size_t reserved_connections = 1024;
// Lines of the log about one user or host, of what it need not wait for a commit for: so many at once, and one a
// second. A person who looks for a mistake sees all of his; what a loop does fills no disk.
inline constexpr std::size_t log_lines_at_once = 100;
// Imports of one user that came whole and wait to be read. One is being read at a time; who sends more does not wait
// for the answers, and each holds its stream.
inline constexpr std::size_t imports_waiting = 16;
// Above a user's limit some more are let in for as long as it takes to tell them why they are closed.
inline constexpr std::size_t refused_connections = 64;

}  // namespace dcs::limits
