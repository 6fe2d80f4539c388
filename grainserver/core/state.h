#pragma once
// The state of the grain server. All of it is rebuilt from the grains' directories when the server
// starts again; the directories are authoritative.
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
    bool known = false;  // false: no process collected the status
    std::int32_t code = 0, signal = 0;
    bool innocent = false;
    std::string reason;
    wire::Usage usage;
    std::int32_t limit_signal = 0;  // not 0: the launcher ended it at a limit, which `reason` names
};

// A look counts no more: the checkpoints of eleven days, one a minute.
inline constexpr std::size_t increments_max = 16'384;

// The state of the directory at the last look.
struct DirFacts {
    bool announced = false;
    std::map<std::uint32_t, std::uint64_t> increments;   // after the acknowledged ones: number -> bytes of out and err
    std::map<std::uint32_t, std::uint64_t> checkpoints;  // of these: number -> bytes
    bool too_many = false;                               // more than increments_max
    wire::Usage usage;                                   // of the running process
    std::string strange;                                 // a file that is ignored, and why
    std::string lost;                                    // of one that has ended: why its output is
    bool disk_full = false;                              // what it wrote last may be missing
};

enum class Phase : std::uint8_t {
    queued,    // its directory is complete or being written; tentative: being verified; waits for a slot
    starting,  // the launcher has been asked to start it; with others it may wait there for a slot
    running,
    ended  // its process tree has ended; its report is due
};

enum class Ending : std::uint8_t {
    none,
    discard,     // killed; it is not reported
    asked,       // withdrawn: a last checkpoint may come; an exit now is the grain's own
    terminated,  // withdrawn, TERM sent or about to be: an exit now is not the grain's own
    overrun      // exceeded a limit: killed, which is its result
};

// A report that is sent and not acknowledged.
struct Outstanding {
    std::uint32_t first = 0, last = 0;
    bool ended = false;
    std::uint64_t bytes = 0;
    Instant since{};
};

// Starting: the launcher was asked for it back, and this is to be said if it has not started it.
struct CalledBack {
    Code code = Code::refused;
    std::string text;
};

// What Derived holds of one grain.
struct Marks {
    bool process = false, files = false, writing = false, ends = false, lingers = false;
    std::optional<std::uint64_t> held;  // by arrival
    std::uint64_t in_flight = 0;
    std::optional<std::pair<bool, std::uint64_t>> place;  // in the queue: staged ones first, then by arrival
    Instant deadline = Instant::never();
    bool operator==(const Marks &) const = default;
};

struct Grain {
    Marks marks;
    Phase phase = Phase::queued;
    bool written = false;                      // its directory is complete
    std::optional<wire::Launch> held;          // a small grain's, whose directory is made when its turn comes near
    bool tentative = false;                    // verified before it is queued, and before others in the queue
    bool staged = false;                       // tentative: verified that it can run
    std::uint64_t order = 0;                   // of arrival, for the queue
    Instant give_up_start = Instant::never();  // queued, or waiting at the launcher: deadline for a free slot
    Instant retry_start = Instant::never();    // queued: the launcher had no slot; the earliest retry
    std::optional<CalledBack> called_back;
    bool large = false;                  // it demands memory or several cores
    std::int32_t notice = 0;             // minutes
    std::int32_t wall_s = 0;             // maximum run time; 0: no limit
    Instant wall_at = Instant::never();  // the end of that time
    Instant began = Instant::never();    // its run
    std::int64_t cpu_us = 0;             // of this incarnation, at the last look
    std::uint32_t next_seq = 1;          // first increment of this run
    std::uint32_t acked = 0;             // last increment that the scheduler has
    DirFacts facts;
    bool looked = false, looked_after_end = false;
    std::set<std::uint32_t> bad_checkpoints;
    std::optional<ExitFacts> exit;
    std::optional<Outstanding> outstanding;
    bool hold = false;                     // no further report before the next call-in
    int unreadable = 0;                    // failed attempts to read its files, in a row
    bool report_even_nothing = false;      // call-in: report the usage even without new output
    bool want_signal = false;              // the checkpoint signal is due at the next look
    bool want_warning = false;             // the thrash signal is due at the next look
    Instant answer_at = Instant::never();  // running: when the scheduler is notified of its start
    Instant signal_at = Instant::never(), look_at = Instant::never();
    Ending ending = Ending::none;
    std::string reason;                                // of the ending
    wire::GivenBack given_back = wire::GivenBack::no;  // asked, terminated: by this server itself
    std::int32_t limit_signal = 0;                     // overrun: the signal that the system would have sent
    bool by_engine = false;                            // ended: by the SIGTERM of the engine whose job this is
    std::optional<std::uint32_t> checkpoint_before;    // asked: newest checkpoint at the first look after that
    Instant term_at = Instant::never();                // asked: deadline for the last checkpoint
    Instant act_at = Instant::never();                 // asked: send TERM; terminated, overrun, discard: KILL (again)
    GrainContents content;
    GrainCourtesy courtesy;
};

// Kept in step with the grains (derived.cc), so that no input takes time for every grain that waits here.
struct Derived {
    std::set<std::pair<std::pair<bool, std::uint64_t>, GrainId>> queue;  // may be started
    std::set<std::pair<Instant, GrainId>> deadlines;
    std::set<std::pair<std::uint64_t, GrainId>> held;  // their directories are not begun
    std::set<GrainId> files;                           // grains that bring files or make them
    int processes = 0;                                 // of grains; each takes a slot
    int ending = 0;                                    // of these, grains that the scheduler has given up
    int lingering = 0;                                 // of these, large ones
    int writing = 0;                                   // grains whose directories are being made
    std::uint64_t in_flight = 0;                       // bytes of unanswered reports, at least 1 for each
    bool operator==(const Derived &) const = default;
};

enum class Link : std::uint8_t {
    down,  // until link_at
    connecting,
    greeting,  // FirstCall is sent
    ready      // configured: reports are sent
};

// A server that is part of a batch job ends before the job does.
struct Job {
    bool part_of = false;                 // of one
    Instant leave_at = Instant::never();  // before the job's limit
    Duration idle{};                      // without a grain for that long, it leaves; 0: it waits for grains
    Instant idle_since{};
    std::string leaving;  // not empty: it accepts no grains, and ends when it has none; the reason
};

// The peer of the link.
enum class Peer : std::uint8_t { scheduler, backup };

struct State {
    // fixed
    std::string host, binary_class, boot_id;
    std::uint64_t instance = 0;
    std::uint32_t confinement = 0;  // Rungs of its grains
    std::string resources;          // that this host offers by itself (base/resources.h)
    wire::GrainLimits limits;       // of its grains
    bool launcher_counts = false;   // memory and processes of grains, for lack of control groups
    bool has_backup = false;
    bool asks_for_backup = false;  // on another host: the scheduler sets has_backup
    // the scheduler's configuration; saved for the next start
    Duration interval = seconds(10);
    std::int32_t slots = 0;
    std::uint64_t epoch = 0;
    // what the backup has acknowledged since the scheduler last accepted this server; saved
    std::uint64_t backup_store = 0, backup_number = 0;
    wire::BackupPlace backup_place;  // as last stated by the scheduler; saved
    // link to the scheduler, or to the backup while the scheduler is away (backup.cc)
    Link link = Link::down;
    Peer peer = Peer::scheduler;
    // down: time to connect; connecting, greeting: time to give up; ready, to the backup: time to try the scheduler
    Instant link_at{};
    bool leaving = false;   // ready, to the backup: disconnect as soon as nothing is outstanding
    int failures = 0;       // failed connections to the scheduler in a row
    int refusals = 0;       // answers in a row that this server or the scheduler refuses the other
    std::string told_down;  // the reason last logged why the scheduler does not answer
    bool launcher_up = false;
    Instant launcher_gone{};       // since when it is not up
    bool launcher_queues = false;  // it takes more grains than there are slots, and gives them back
    Instant slice_start{}, next_call_in{};
    std::uint64_t next_order = 1;
    Courtesy courtesy;
    std::string no_launcher, full_disk;    // not empty: no grain is accepted; the reason
    std::optional<Instant> full_seen;      // when the disk was last seen full
    Instant gauge_at = Instant::never();   // before the next call-in
    Instant ending_at = Instant::never();  // likewise, for how many are ending
    int told_ending = 0;                   // by the last call-in
    Job job;
    std::map<GrainId, Grain> grains;
    Derived derived;
    std::set<GrainId> crowded;                       // their reports wait until there is less in flight
    std::set<GrainId> grouped;                       // their last reports leave together, report_pause after:
    Instant last_group{};                            // when such a report last left
    std::map<std::string, Transfer> fetches, puts;   // by digest; from the grains
    std::map<std::string, std::uint64_t> begun_for;  // by user, of those with transfers: when one began last

    bool with_scheduler() const { return link == Link::ready && peer == Peer::scheduler; }
};

// Internal limits of the core.
inline constexpr Duration kill_after = seconds(10);          // between TERM and KILL
inline constexpr Duration last_checkpoint_min = seconds(1);  // for a withdrawn grain: a third of the slice,
inline constexpr Duration last_checkpoint_max = seconds(2);  // within these bounds
inline constexpr Duration link_patience = seconds(15);       // for a connection, and for the answer to FirstCall
inline constexpr int tries_before_backup = 3;                // failed tries of the scheduler in a row
inline constexpr Duration launcher_patience = seconds(10);   // that it may take to start
inline constexpr Duration full_disk_look = seconds(30);      // between looks whether there is room again
inline constexpr Duration full_disk_tells = seconds(60);     // a failure so soon after it may be due to a full disk
inline constexpr int written_here = 2;                      // for each slot: small grains with a directory in the queue
inline constexpr int queued_there = 2;                      // for each slot: grains that wait at the launcher
inline constexpr Duration report_pause = milliseconds(15);  // between ends that are reported, while grains wait here
inline constexpr std::uint64_t in_flight_max = 128u << 20;  // bytes of unanswered reports

// It needs nothing but its record and files for its streams: its directory may have been another's.
bool is_small(const wire::Launch &launch);
bool is_large(const wire::Demands &demands);
const std::string &shut_reason(const State &state);  // why no grain is accepted; or empty
Instant leave_time(const State &state);              // by the clock; never, once it is leaving
bool has_left(const State &state);                   // it is leaving, and all that it had is reported
// The earliest instant at which Tick has an effect.
Instant next_deadline(const State &state);

}  // namespace dcs::server
