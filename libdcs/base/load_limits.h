#pragma once
// How much one peer or user may load the scheduler with, so that it still serves the others. limits.h has the limits of
// things themselves.
#include <cstddef>
#include <cstdint>

namespace dcs::limits {

// Requests of one user that wait to be decided. A program waits for its answers; one that sends so many without
// waiting would make others wait.
inline constexpr std::size_t queued_requests = 4096;
inline constexpr std::size_t queued_bytes = 64u << 20;
// Held in memory for the connections of one user of this host, or of one user of other hosts: incomplete
// messages and unread answers. Room for three of the largest each way, and no peer fills the memory with thousands of
// fragments.
inline constexpr std::size_t held_bytes = 128u << 20;
// Calls that wait for a result: of one session, where each thread of a control program has one, and of one user.
inline constexpr std::size_t parked_waits = 1024;
inline constexpr std::size_t parked_waits_per_user = 4096;
// Kinds of grains that one user may have waiting, in all sessions together: a free slot looks at each.
inline constexpr std::size_t shapes_per_user = 4096;
// With less free space than this at the backing store, reports of a user's grains are accepted only while the user is
// within the share; the servers keep them in the meantime.
inline constexpr std::uint64_t reports_leave_bytes = 256u << 20;
// Above this a connection is not read until its peer has read its answers.
inline constexpr std::size_t unread_bytes = 4u << 20;
// Messages of one connection, or of all of a user, that are read ahead of their turn and handed over at once; and of a
// host in one turn. Such a turn takes some milliseconds, and others wait no longer for a host that sends without end.
inline constexpr std::size_t frames_of_connection = 256;
inline constexpr std::size_t host_requests_per_turn = 256;
// Connections that are kept for root, the scheduler's own account and other hosts.
inline constexpr std::size_t reserved_connections = 1024;
// Milliseconds of a turn that one user or host has while others wait, and that a turn has for what changes nothing: no
// commit makes a longer turn of that worth while, and what has arrived meanwhile is read only between turns.
inline constexpr int own_turn_ms = 5;
// Answers of one turn that are read from the disk or built from lists, counted as in scheduler/turn/weight.cc, and
// grains of one page of an export: each takes some ten microseconds, when the turn is decided and its time no longer
// counts.
inline constexpr std::size_t answers_per_turn = 256;
inline constexpr std::size_t export_page_grains = 256;
// Lines of the log about one user or host, of what it need not wait for a commit for: so many at once, and one a
// second. A person who looks for a mistake sees all lines; a loop cannot fill the disk.
inline constexpr std::size_t log_lines_at_once = 100;
// Complete imports of one user that wait to be read, one at a time: each holds its stream.
inline constexpr std::size_t imports_waiting = 16;
// Above a user's limit some more are accepted just to tell them why they are closed.
inline constexpr std::size_t refused_connections = 64;

}  // namespace dcs::limits
