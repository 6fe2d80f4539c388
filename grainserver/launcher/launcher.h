#pragma once
// The parent of all grains of one server directory. It survives the grain server's end and
// restart, so that no exit status is lost; it handles directories and processes, and does not know
// sessions, schedulers or networks. What takes privileges its starter does (grainserver/starter).
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <sys/types.h>

#include "base/instant.h"
#include "base/status.h"
#include "grainserver/files/grain_record.h"
#include "grainserver/files/launcher_calls.h"
#include "base/files.h"
#include "grainserver/starter/leftovers.h"
#include "grainserver/launcher/pace.h"
#include "grainserver/launcher/start_grain.h"
#include "locks/dcs_atoms.h"
#include "locks/uid_claims.h"
#include "process/table.h"

namespace dcs::launcher {

struct LauncherOptions {
    std::string directory, name;
    std::string slots;    // empty: DIR/slots
    bool cgroups = true;  // use control groups if available
    bool fence = true;    // give up what the starter has; not in tests that go on in the same process
};

// If the kernel weighs sessions against each other (autogroup), a child of a grain that creates a
// session has full weight again, whatever its nice value.
class NewSessions {
public:
    // Scans the grains' trees and lowers the sessions that are not lowered yet. `grains`: their
    // first processes. False: the kernel refused one for now; repeat soon.
    bool lower(const std::set<pid_t> &grains, starter::StarterClient &starter);
    // Whether this kernel has autogroup.
    static bool matter();

private:
    std::map<pid_t, bool> seen_;  // sessions below the grains: lowered?
};

// When that is removed which grains under an anonymous uid leave on the host (starter/leftovers.h).
class Leftovers {
public:
    // `remove`: a part of what the uid has left.
    explicit Leftovers(std::function<starter::Leftovers::Left(uid_t)> remove) : remove_(std::move(remove)) {}
    // A grain under it has ended.
    void note(uid_t uid, Instant now) { ended_[uid] = now + rest; }
    // One part. Uids of `running` grains wait.
    void clear(const std::set<uid_t> &running, Instant now);
    Instant next() const;  // when clear() has work; never() if nothing is noted

private:
    static constexpr Duration rest = seconds(1);                 // a user's next grain often follows at once
    static constexpr Duration between_parts = milliseconds(50);  // for grains of others, which wait during a part
    std::function<starter::Leftovers::Left(uid_t)> remove_;
    std::map<uid_t, Instant> ended_;
};

class Launcher {
public:
    // Takes DIR/launcher.lock (Code::refused: another launcher serves this directory), ends and records
    // the grains of a dead launcher, and listens on DIR/launcher.sock.
    Status open(const LauncherOptions &options);
    // Serves until SIGTERM or SIGINT (ends all grains first), QUIT, or its directory is removed. Code::unreachable: the
    // starter has ended.
    Status run();

private:
    struct Running {
        pid_t pid = 0;
        locks::Slots slot;
        bool first_process_ended = false;  // a zombie that keeps its pid; `exit` has its status
        Instant unclear_until{};           // ended: until then a stray without environment may be in an exec
        bool alone = false;                // ended, and certainly no process of it is left
        bool stopped_by_us = false;
        bool low_priority = false;
        files::ExitRecord exit;
        files::Limits limits;
        Instant next_watch{};
        files::Account account;
        Indices indices;        // of resources, that no other grain gets until no process of it is left
        bool in_group = false;  // it had a leaf from its start on
        Leaf leaf;              // until nothing is in it any more
        bool watched() const {
            const files::Limits &l = limits;
            return !first_process_ended && (l.memory_mb > 0 || l.processes > 0 || l.cpu_s > 0 || l.disk_mb > 0);
        }
    };
    using Grains = std::map<std::string, Running>;

    Status listen();
    void bury_the_dead();  // grains of an earlier launcher
    void bury(const std::string &dir, int grain);
    void end_orphan(const std::string &dir, const std::string &leaf);
    void claim_uids();
    Status give_up_the_rest();
    void wait_once(Instant now);
    void lower_sessions(Instant now);
    void accept_peer();
    void read_peer(std::size_t index);
    void handle(int peer, const files::LauncherCall &call);
    void prove(int peer, const files::LauncherCall &call);
    // queue.cc
    struct Queued {
        std::string dir;
        int peer = -1;
    };
    void start(int peer, const files::LauncherCall &call);
    void queue(int peer, const files::LauncherCall &call);
    void recall(int peer, const std::string &dir);
    StartOutcome try_start(const std::string &dir, int limit, HeldSlot &held);
    bool start_next(HeldSlot &held);
    void hand_on(HeldSlot held);
    void release(HeldSlot held);
    void start_queue(Instant now);
    bool may_start_queued() const;
    bool has_enough_queued() const { return queue_.size() >= static_cast<std::size_t>(std::max(slot_limit_, 1)); }
    void refuse_queue();
    void list(int peer);
    void on_signals();
    void look_at_children();
    bool note_end(const std::string &dir, Running &grain);
    bool reap_strays();
    bool clear_tree(const std::string &dir, Running &grain, bool strays);
    void seal(Leaf &leaf);
    FoundProcesses end(const std::function<FoundProcesses()> &look);
    void kill_tree(const std::string &dir, Running &grain);
    // strays.cc
    enum class Whose : std::uint8_t { its_own, unclear, unclaimed, of_another };
    struct Members {
        FoundProcesses found;                // of the grain
        std::vector<ProcessStat> unclaimed;  // of its account, and not attributable to any grain
    };
    std::set<pid_t> not_strays() const;  // children that are no left-overs of grains
    static bool enclosed(const Running &grain) { return grain.in_group && grain.account.change; }
    std::vector<pid_t> housed_in(const Leaf &leaf) const;
    RunsAs may_be_of(const Running &grain, pid_t pid) const;
    std::set<pid_t> housed() const;  // processes in the control groups of grains
    Whose whose(pid_t stray, const std::string &dir, const Running &grain, const std::set<pid_t> &housed) const;
    std::vector<pid_t> strays_of(const std::string &dir, const Running &grain) const;  // its own; including zombies
    bool has_strays() const;
    void chase(const std::string &dir, const Running &grain);
    FoundProcesses tree_of(const std::string &dir, const Running &grain) const;
    Members members_in(const ProcessTable &table, const std::string &dir, const Running &grain) const;
    void end_unclaimed(const std::string &dir, const Running &grain, const std::string &words);
    void keep_keeper();
    // limits.cc
    void watch(Instant now);
    void watch_one(const std::string &dir, Running &grain, const ProcessTable *table);
    void note_limit(const std::string &dir, Running &grain);
    void over(const std::string &dir, Running &grain, int signal, const std::string &words);
    bool finish(const std::string &dir, Running &grain);
    void stop_all(Instant now);
    void push_stop(Instant now);
    void note_leftovers(const files::Account &of);
    void clear_leftovers(Instant now);
    void drop_peer(int fd);
    void send_to(int peer, const files::LauncherCall &call);
    void send_packet_to(int peer, const std::string &packet);
    void send_answers();

    std::string directory_, path_;  // DIR, DIR/grains; both absolute
    Place place_;
    Cgroups cgroups_;
    bool counts_ = false;  // they cannot limit memory and processes, so the launcher counts
    mutable starter::StarterClient starter_;
    Leaves leaves_{cgroups_, starter_};
    SlotKeeper keeper_;
    locks::AdaptiveLock lock_;
    locks::UidClaims uids_;
    Fd base_, grains_fd_, listener_, signals_;
    std::vector<int> peers_;
    std::map<int, std::string> answers_;  // to peers that take several in a packet
    Instant answers_by_ = Instant::never();
    Grains grains_;
    std::deque<Queued> queue_;
    int slot_limit_ = 0;        // as of the last QUEUE or FIRST
    Instant next_queue_try_{};  // a slot could not be had
    bool ended_ = false, stopping_ = false;
    Instant kill_at_ = Instant::never(), leave_at_ = Instant::never();
    NewSessions new_sessions_;
    Instant next_lower_{};  // for sessions that grains create
    bool lower_again_ = false;
    Instant spares_until_ = Instant::never();  // no grain runs: when spare leaves are removed
    Instant next_try_{};                       // for operations that the kernel or the disk refused
    Instant next_watch_{};
    Leftovers leftovers_{[this](uid_t uid) { return starter_.clear(uid); }};
    std::set<std::string> stale_leaves_;  // not removable yet
};

}  // namespace dcs::launcher
