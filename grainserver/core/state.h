#pragma once
// What the grain server knows. All of it is rebuilt from the grains' directories when the server
// starts again; nothing here is the truth about a grain, the directory is.
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "base/ids.h"
#include "base/instant.h"
#include "grainserver/core/content_state.h"
#include "grainserver/core/courtesy_state.h"
#include "wire/backup_calls.h"

namespace dcs::server {

struct GrainId {  // one lease of one grain
    GrainKey key;
    Incarnation incarnation = 0;
    auto operator<=>(const GrainId &) const = default;
};
std::string to_text(const GrainId &id);  // "ann/3:17 incarnation 2"

// How a grain's processes ended.
struct ExitFacts {
    bool known = false;  // false: nobody saw the status
    std::int32_t code = 0, signal = 0;
    bool innocent = false;
    std::string reason;
    wire::Usage usage;
    std::int32_t limit_signal = 0;  // not 0: the launcher ended it because of a limit, which `reason` names
};

// What was seen in the directory at the last look.
struct DirFacts {
    bool announced = false;
    std::map<std::uint32_t, std::uint64_t> increments;   // number -> bytes of out and err, where both are there
    std::map<std::uint32_t, std::uint64_t> checkpoints;  // number -> bytes
    wire::Usage usage;                                   // of the running process
    std::string strange;                                 // a file of its that does not count, and why
};

enum class Phase : std::uint8_t {
    queued,    // its directory is written (or being written); tentative: verified; waits for a slot
    starting,  // the launcher was asked
    running,
    ended      // the tree of processes is gone; its report is due
};

enum class Ending : std::uint8_t {
    none,
    discard,     // killed; nobody hears of it again
    asked,       // withdrawn: a last checkpoint may come; if it ends by itself now that is its own end
    terminated,  // withdrawn, TERM sent or about to be: its end is not its own
    overrun      // broke a limit: killed, and that is its result
};

// A report on its way that was not answered yet.
struct Outstanding {
    std::uint32_t first = 0, last = 0;
    bool ended = false;
    std::uint64_t bytes = 0;
    Instant since{};
};

struct Grain {
    Phase phase = Phase::queued;
    bool written = false;                // its directory is complete
    bool tentative = false;              // verified before it is queued, and before the others of the queue
    bool staged = false;                 // tentative: it is known that it can run
    std::uint64_t order = 0;             // of arrival, for the queue
    Instant give_up_start = Instant::never();  // queued: until then a slot must become free
    Instant retry_start = Instant::never();    // queued: the launcher had no slot; not before
    std::int32_t notice = 0;             // minutes
    std::int32_t wall_s = 0;             // longest run; 0: no limit
    Instant wall_at = Instant::never();  // when that is over
    std::int64_t cpu_us = 0;             // of this incarnation, as last seen
    std::uint32_t next_seq = 1;          // first increment of this run
    std::uint32_t acked = 0;             // last increment that the scheduler has
    DirFacts facts;
    bool looked = false, looked_after_end = false;
    std::set<std::uint32_t> bad_checkpoints;
    std::optional<ExitFacts> exit;
    std::optional<Outstanding> outstanding;
    bool hold = false;                   // nothing more of it before the next call-in
    int unreadable = 0;                  // failed attempts to read its files
    bool report_even_nothing = false;    // call-in: usage goes although there is nothing new
    bool want_signal = false;            // checkpoint signal is due at the next look
    bool want_warning = false;           // thrash signal, likewise
    Instant signal_at = Instant::never(), look_at = Instant::never();
    Ending ending = Ending::none;
    std::string reason;                  // of the ending
    wire::GivenBack given_back = wire::GivenBack::no;  // asked, terminated: by this server itself
    std::int32_t limit_signal = 0;       // overrun: what the system would have sent
    std::optional<std::uint32_t> checkpoint_before;  // asked: newest checkpoint at the first look after that
    Instant term_at = Instant::never();  // asked: no longer than until then
    Instant act_at = Instant::never();   // asked: send TERM; terminated, overrun, discard: KILL (again)
    GrainContents content;
    GrainCourtesy courtesy;
};

enum class Link : std::uint8_t {
    down,        // until retry_at
    connecting,
    greeting,    // FirstCall is out
    ready        // configured: reports go
};

// Whom the link goes to.
enum class Peer : std::uint8_t { scheduler, backup };

struct State {
    // fixed
    std::string host, binary_class, boot_id;
    std::uint64_t instance = 0;
    std::uint32_t confinement = 0;  // Rungs that its grains get
    bool has_backup = false;
    bool asks_for_backup = false;   // of another host: has_backup follows what the scheduler says
    // the scheduler's configuration; saved, so that a restarted server keeps its pace
    Duration interval = seconds(10);
    std::int32_t slots = 0;
    std::uint64_t epoch = 0;
    // what the backup has acknowledged since the scheduler last took this server in; saved
    std::uint64_t backup_store = 0, backup_number = 0;
    wire::BackupPlace backup_place;  // as the scheduler said last; saved
    // link to the scheduler, or to the backup while the scheduler is away (backup.cc)
    Link link = Link::down;
    Peer peer = Peer::scheduler;
    // down: connect then; connecting, greeting: give up then; ready, to the backup: try the scheduler then
    Instant link_at{};
    bool leaving = false;     // ready, to the backup: as soon as nothing is on its way
    int failures = 0;         // connections to the scheduler in a row that came to nothing
    bool told_down = false;   // the log says already that the scheduler does not answer
    bool launcher_up = false;
    Instant slice_start{}, next_call_in{};
    std::uint64_t next_order = 1;
    Courtesy courtesy;
    std::map<GrainId, Grain> grains;
    std::map<std::string, Transfer> fetches, puts;  // by digest; they follow from the grains

    bool with_scheduler() const { return link == Link::ready && peer == Peer::scheduler; }
};

// Limits of the core's own.
inline constexpr Duration kill_after = seconds(10);        // between TERM and KILL
inline constexpr Duration last_checkpoint_min = seconds(1);  // for a withdrawn grain: a third of the slice,
inline constexpr Duration last_checkpoint_max = seconds(2);  // within these
inline constexpr Duration link_patience = seconds(15);     // for a connection, and for the answer to FirstCall
inline constexpr int tries_before_backup = 3;              // of the scheduler, in a row
inline constexpr std::uint64_t in_flight_max = 128u << 20; // bytes of unanswered reports

// The earliest instant at which Tick has something to do.
Instant next_deadline(const State &state);
// Empty: all cross references hold. Otherwise what is wrong. For tests.
std::string check(const State &state);

}  // namespace dcs::server
