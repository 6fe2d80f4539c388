#pragma once
// Messages between a grain server and the scheduler. The server opens the connection and
// keeps it open; the scheduler sends on the same connection at any time. There are
// no request/reply pairs: every message is independent and may be repeated after a reconnect.
#include <cstdint>
#include <string>
#include <vector>

#include "wire/user_calls.h"

namespace dcs::wire {

struct WireGrain {  // (user, session, grain)
    std::string user;
    std::int32_t session = 0, grain = 0;
};
inline GrainKey key_of(const WireGrain &g) { return GrainKey{{g.user, g.session}, g.grain}; }
inline WireGrain wire_of(const GrainKey &k) { return WireGrain{k.session.user, k.session.number, k.grain}; }

// ---- server -> scheduler ------------------------------------------------------------------
struct HeldGrain {
    WireGrain key;
    std::uint32_t incarnation = 0;
    std::int64_t cpu_us = 0;  // of this incarnation so far (the copy that has run less ends)
};
// First message on every connection: the server's identity, and every grain that it holds, running or ended
// but not yet acknowledged. A grain that is leased to this server and not listed is lost.
struct FirstCall {
    std::uint16_t protocol = opening_form;
    std::string host, binary_class;
    std::string boot_id;         // grains of another boot are dead
    std::uint64_t instance = 0;  // random per server process
    std::vector<HeldGrain> held;
    std::uint32_t confinement = 0;  // Rungs of each grain that it starts (base/confinement.h)
};
// Of each grain there, by the options of the host's server; 0: none.
struct GrainLimits {
    std::int64_t memory_mb = 0, processes = 0, cpu_s = 0, file_mb = 0, disk_mb = 0;
    bool operator==(const GrainLimits &) const = default;
};
// Periodic report (each call-in interval; early when a grain changed state). GrainReports of the
// same call-in precede it.
struct CallIn {
    double load = 0;
    std::int64_t free_memory_kb = 0;
    bool boundary = false;       // a time slice ends with it: running grains may be usurped
    std::string shut;            // not empty: why this host takes no grains now; for display
    std::int64_t memory_kb = 0;  // that the server may use, free or not; 0: unknown
    std::string resources;       // that it has found, "gpu=[0,1]" (base/resources.h); the host table goes before it
    std::string version;         // release of the server
    GrainLimits limits;
    std::string warning;      // not empty: what its administrators should mend, though it takes grains; for display
    std::int32_t ending = 0;  // grains that the scheduler has given up, whose processes have not ended
};
// The cause of an innocent end that no message ordered.
enum class GivenBack : std::uint8_t {
    no,
    shut_out,   // the work of the host's owner left it hardly any processor time
    thrashing,  // the host pages, or runs out of memory
    by_itself   // the grain ended with a status of grainlib.h for "not my fault" or "run me again"
};
// State of one grain. Increments first_seq..last_seq of out and err are joined; first_seq is the
// one after the last that the scheduler acknowledged, empty range (first > last): nothing new.
struct GrainReport {
    WireGrain key;
    std::uint32_t incarnation = 0;
    std::uint32_t first_seq = 0, last_seq = 0;
    bool has_checkpoint = false;  // checkpoint and message belong to last_seq
    std::string checkpoint, message;
    std::uint64_t input_position = 0;  // of the ORIGINAL input: first byte the checkpoint leaves unread
    std::string out, err;
    Usage usage;         // of this incarnation so far
    bool ended = false;  // the process tree is gone; this is the last report
    std::int32_t exit_code = 0, signal = 0;
    bool innocent = false;                 // not the grain's fault: withdrawn, host's disk full, status unknown
    std::string reason;                    // in words, when innocent or a limit was hit
    bool limit = false;                    // ended by a limit that it would exceed on any host
    GivenBack given_back = GivenBack::no;  // innocent and not withdrawn by the scheduler: why
    std::vector<GrainFile> files;          // ended: its outputs; their contents were sent before
    bool limit_of_host = false;            // limit: it is one of GrainLimits, so another host may permit more
};
// Answer to Launch. ok: the process exists. Otherwise code and text give the cause:
//   not_found      the program is missing or cannot be executed, also for this user's other grains of that program
//   invalid        the grain's own arguments, environment or working directory
//   limit, refused the host takes no grains now, or its owner's rules forbid this one
//   others         a fault of the host
// After the first two the host is nogo for this grain. A tentative launch is answered twice: staged, when the server
// has verified that it can run; ok, when it runs. Another code after ok: the server had to give up the running grain.
struct LaunchResult {
    WireGrain key;
    std::uint32_t incarnation = 0;
    bool ok = false;
    bool staged = false;
    std::int32_t code = 0;
    std::string text;
    std::int64_t uid = -1;  // under which it runs; -1: not known
};

// Answer to Peek.
struct Peeked {
    std::uint64_t ticket = 0;
    std::uint64_t total = 0;  // bytes of the increments after `after`
    std::string bytes;        // from `offset` on; empty also if the host does not have the grain
};

// ---- scheduler -> server ------------------------------------------------------------------
struct Configure {
    double interval_s = 0;
    std::int32_t slots = 0;
    std::uint64_t epoch = 0;
};
struct Refused {
    std::string text;
};  // not in the host table, other version ...; slow retry
struct Launch {
    WireGrain key;
    std::uint32_t incarnation = 0;
    std::vector<std::string> argv, env;
    std::string directory;
    // Checkpoint text + unread rest of the original input. If `files` has an input, the checkpoint text
    // alone: the rest is that content from input_base on, and the server puts the two together.
    std::string input;
    std::uint64_t checkpoint_length = 0;  // how much of `input` is checkpoint text
    std::uint64_t input_base = 0;         // offset in the original input where the rest begins
    std::uint32_t next_seq = 1;           // number of the first increment to write
    Demands demands;                      // of its submission
    bool account = false;                 // under the user's login, otherwise under an anonymous uid
    std::vector<GrainFile> files;         // of its submission, but programs of other binary classes
    // Recorded and verified at once, started when a slot is free. The scheduler withdraws the grain that it
    // displaces only after the answer `staged`.
    bool tentative = false;
    std::string
        offers;  // with indices, "gpu=[0,1]": of what its demands name, of which it gets some, and of gpu in any case
};
enum class Verdict : std::uint8_t {
    taken,    // committed; forget increments up to last_seq, and the grain if it ended
    have_it,  // committed earlier (or finished is final); same duty for the server as taken
    stale,    // this incarnation is no longer leased: kill it and forget everything of it
    later     // could not be committed now (disk full): keep and repeat at the next call-in
};
struct ReportAck {
    WireGrain key;
    std::uint32_t incarnation = 0, last_seq = 0;
    bool ended = false;
    Verdict verdict = Verdict::taken;
};
// End the grain. discard: KILL at once and forget. Otherwise checkpoint (if announced), TERM, KILL,
// and a last report with ended + innocent. only_if_waiting: a grain that has started stays, and nothing is answered.
struct Withdraw {
    WireGrain key;
    std::uint32_t incarnation = 0;
    bool discard = false;
    std::string reason;
    bool only_if_waiting = false;
};

struct LogLevel {
    std::string level;
};  // a word of log_levels
// Requests output that a running grain has written and not reported: of the increments after `after`, joined, the bytes
// from `offset` on. Answered by Peeked with the same ticket.
struct Peek {
    WireGrain key;
    std::uint32_t incarnation = 0, after = 0;
    Stream stream = Stream::out;
    std::uint64_t offset = 0;
    std::uint32_t max = 0;
    std::uint64_t ticket = 0;
};

constexpr Verdict last_of(Verdict) { return Verdict::later; }
constexpr GivenBack last_of(GivenBack) { return GivenBack::by_itself; }
constexpr GivenBack in_form(GivenBack why, Form form) {
    return form < 9 && why == GivenBack::by_itself ? GivenBack::no : why;
}

// clang-format off
template <class A> void serialize(A &a, WireGrain &x, unsigned) {
    a & at_most(limits::name_bytes, DCS_FIELD(user)) & DCS_FIELD(session) & DCS_FIELD(grain);
}
template <class A> void serialize(A &a, HeldGrain &x, unsigned) { a & DCS_FIELD(key) & DCS_FIELD(incarnation) & DCS_FIELD(cpu_us); }
template <class A> void serialize(A &a, FirstCall &x, unsigned) {
    a & DCS_FIELD(protocol) & at_most(limits::name_bytes, DCS_FIELD(host))
      & at_most(limits::name_bytes, DCS_FIELD(binary_class)) & DCS_FIELD(boot_id) & DCS_FIELD(instance)
      & at_most(limits::held_grains, DCS_FIELD(held))
      & DCS_FIELD(confinement);
}
template <class A> void serialize(A &a, GrainLimits &x, unsigned) {
    a & DCS_FIELD(memory_mb) & DCS_FIELD(processes) & DCS_FIELD(cpu_s) & DCS_FIELD(file_mb) & DCS_FIELD(disk_mb);
}
template <class A> void serialize(A &a, CallIn &x, unsigned) {
    a & DCS_FIELD(load) & DCS_FIELD(free_memory_kb) & DCS_FIELD(boundary)
      & at_most(limits::message_bytes, DCS_FIELD(shut)) & shown_since<9>(DCS_FIELD(memory_kb))
      & at_most(limits::offer_bytes, shown_since<9>(DCS_FIELD(resources)))
      & at_most(limits::name_bytes, shown_since<9>(DCS_FIELD(version)))
      & shown_since<9>(DCS_FIELD(limits)) & at_most(limits::message_bytes, shown_since<9>(DCS_FIELD(warning)))
      & shown_since<9>(DCS_FIELD(ending));
}
template <class A> void serialize(A &a, GrainReport &x, unsigned) {
    a & DCS_FIELD(key) & DCS_FIELD(incarnation) & DCS_FIELD(first_seq) & DCS_FIELD(last_seq) & DCS_FIELD(has_checkpoint)
      & DCS_FIELD(checkpoint) & DCS_FIELD(message) & DCS_FIELD(input_position) & DCS_FIELD(out) & DCS_FIELD(err)
      & DCS_FIELD(usage) & DCS_FIELD(ended) & DCS_FIELD(exit_code) & DCS_FIELD(signal) & DCS_FIELD(innocent) & DCS_FIELD(reason)
      & DCS_FIELD(limit) & DCS_FIELD(given_back) & at_most(limits::grain_files, DCS_FIELD(files))
      & shown_since<9>(DCS_FIELD(limit_of_host));
}
template <class A> void serialize(A &a, LaunchResult &x, unsigned) {
    a & DCS_FIELD(key) & DCS_FIELD(incarnation) & DCS_FIELD(ok) & DCS_FIELD(staged) & DCS_FIELD(code) & DCS_FIELD(text)
      & shown_since<9>(DCS_FIELD(uid));
}
template <class A> void serialize(A &a, Configure &x, unsigned) { a & DCS_FIELD(interval_s) & DCS_FIELD(slots) & DCS_FIELD(epoch); }
template <class A> void serialize(A &a, Refused &x, unsigned) { a & DCS_FIELD(text); }
template <class A> void serialize(A &a, Launch &x, unsigned) {
    if (positional(a)) return list_of_launch_8(a, x);
    a & DCS_FIELD(key) & DCS_FIELD(incarnation) & at_most(limits::argv_items, DCS_FIELD(argv))
      & at_most(limits::argv_items, DCS_FIELD(env)) & at_most(limits::path_bytes, DCS_FIELD(directory))
      & DCS_FIELD(input) & DCS_FIELD(checkpoint_length) & DCS_FIELD(input_base) & DCS_FIELD(next_seq)
      & DCS_FIELD(demands) & DCS_FIELD(account) & at_most(limits::grain_files, DCS_FIELD(files)) & DCS_FIELD(tentative)
      & at_most(limits::offer_bytes, since<9>(DCS_FIELD(offers)));
}
template <class A> void serialize(A &a, LogLevel &x, unsigned) { a & at_most(limits::name_bytes, DCS_FIELD(level)); }
template <class A> void serialize(A &a, Peek &x, unsigned) {
    a & DCS_FIELD(key) & DCS_FIELD(incarnation) & DCS_FIELD(after) & DCS_FIELD(stream) & DCS_FIELD(offset)
      & DCS_FIELD(max) & DCS_FIELD(ticket);
}
template <class A> void serialize(A &a, Peeked &x, unsigned) {
    a & DCS_FIELD(ticket) & DCS_FIELD(total) & at_most(limits::fetch_chunk_bytes, DCS_FIELD(bytes));
}
template <class A> void serialize(A &a, ReportAck &x, unsigned) {
    a & DCS_FIELD(key) & DCS_FIELD(incarnation) & DCS_FIELD(last_seq) & DCS_FIELD(ended) & DCS_FIELD(verdict);
}
template <class A> void serialize(A &a, Withdraw &x, unsigned) {
    a & DCS_FIELD(key) & DCS_FIELD(incarnation) & DCS_FIELD(discard) & DCS_FIELD(reason)
      & shown_since<9>(DCS_FIELD(only_if_waiting));
}
// clang-format on

}  // namespace dcs::wire
