#pragma once
// READ THIS FIRST. The scheduler in one picture; each arrow is called in turn.cc:
//
//   take ──► intake ──► decode ──► decide ──► apply ──► plan ──► commit ──► effects
//            fair        typed      pure       State     trees    durable    only now
//            choice      Input      function   + Undo                        replies leave
//
// One turn gathers what has arrived, decides each input on the State that the previous one left,
// follow-ups first, and commits all of it with one group of syncs. Effects leave after that, never
// before. While a commit is in flight arrivals are gathered but not decided.
//
// The commit's answer:
//   done      the effects go out, in order
//   nothing   the State is rolled back. If the disk is full, what makes room or ends something (kill,
//             close, clean, a host's settings, a grain's end) is decided again and committed with the store's reserve.
//             The other inputs whose own decision needed the disk are refused: a call gets the error,
//             a report the verdict `later`, a first call loses its link (the server tries again),
//             internal inputs are decided again a little later. The rest is decided again,
//             without those of their follow-ups that need the disk
//   unknown   nothing is sent and the process ends (Outside::fatal)
#include <map>
#include <set>
#include <string>
#include <vector>

#include "scheduler/state/decision.h"
#include "scheduler/record/plan.h"
#include "scheduler/record/scrub.h"
#include "scheduler/turn/age_clock.h"
#include "scheduler/turn/concerns.h"
#include "scheduler/turn/connections.h"
#include "scheduler/turn/contents.h"
#include "scheduler/turn/decode.h"
#include "scheduler/turn/effects.h"
#include "scheduler/turn/figures.h"
#include "scheduler/turn/imports.h"
#include "scheduler/turn/intake.h"
#include "scheduler/turn/line_budget.h"
#include "scheduler/turn/live.h"
#include "scheduler/turn/outside.h"
#include "scheduler/turn/uploads.h"

namespace dcs::turn {

class Turn {
public:
    struct Setup {
        core::State state;                            // as rebuilt
        std::map<SessionKey, std::string> set_aside;  // sessions that did not verify, and why
        AboutProcess about;
        std::unique_ptr<library::Library> library;  // as opened
    };
    // `store` and `outside` outlive the Turn. The store is read in run() and committed(), which
    // must not be called while a commit works on it.
    Turn(Setup setup, store::Store &store, Outside &outside);
    Turn(const Turn &) = delete;
    Turn &operator=(const Turn &) = delete;

    // Something arrived; always accepted. Above full() the caller should stop reading sockets
    // until the commit in flight is answered.
    void take(Arrival arrival);
    void take_host_table(std::vector<core::HostConfig> hosts);
    void take_policy(core::Policy policy);
    void take_limits(const UserLimits &limits);  // at once
    void take_probe_result(core::ProbeResult result);
    void take_refusal(core::ServerRefused refusal);
    // The process behind a link has ended.
    void take_end(ConnId conn) { delayed_.emplace(now_, core::ServerEnded{conn}); }
    void take_library_job(const library::JobDone &done);
    void take_import(std::uint64_t id, Result<std::string> rows);  // of Outside::decode_import
    bool full() const;

    // Turns, until nothing is left to decide, or a commit is in flight, or others should be read (next_wakeup()).
    void run();
    bool committing() const { return phase_ == Phase::committing; }
    void committed(const store::CommitResult &result);
    // In an idle moment: packs settled grains of closed sessions, looks for damage; a little of it.
    // May start a commit. Nothing to do before tidy_wakeup().
    void tidy();
    Instant tidy_wakeup() const;
    // run() has work at that time even if nothing arrives before.
    Instant next_wakeup() const;

    const core::State &state() const { return state_; }
    const library::Library &library() const { return contents_.library(); }

private:
    enum class Phase : std::uint8_t { open, committing, dead };
    struct Taken {
        core::Input input;
        bool needed_disk = false;  // its own decision, follow-ups aside
        Instant at{};              // when it came; of inputs from inside: nothing
    };

    bool pack_some();
    bool remove_old();
    bool trusts_ages(std::int64_t wall_ms);
    void scrub_some();
    bool gather();
    void measure();
    bool read_enough() const;
    void take_and_measure(Arrival arrival);
    void take_one(Arrival arrival);
    Decoded decode_one(const Arrival &arrival);
    void read_imports();
    void suspect(const Concern &concern);
    void say(Level level, const Line &line);
    void tell_left_out();
    void decide_new(core::Input input, Instant at = {});
    // What may need the disk: everything, the input's own decision (not its follow-ups), nothing.
    enum class DiskFor : std::uint8_t { all, own, none };
    // Decides an input and its follow-ups; true if its own decision needs the disk. What may not
    // need it, but does, is not applied.
    bool decide_all(const core::Input &input, DiskFor disk);
    void apply(const core::Change &change);
    void start_commit(store::Room room);
    void finish();
    void measure_calls();
    void decide_again(const Status &why);
    void refuse(const core::Input &input, const Status &why);
    static bool may_use_reserve(const core::Input &input);
    bool link_is_gone(const core::Input &input) const;
    void hang_up(ConnId conn);
    bool tick_is_due() const;
    void grace_after_pause();

    core::State state_;
    store::Store &store_;
    Outside &outside_;
    Connections connections_;
    Uploads uploads_;
    Imports imports_;
    Contents contents_;
    Live live_;
    Figures figures_;
    Intake intake_;
    record::Scrub scrub_;
    AgeClock age_clock_;
    std::int32_t session_age_s_ = -1;  // of the policy as taken last; -1: of none
    Effects perform_;
    LineBudget lines_, renewals_;
    RepeatedLines refused_;                        // about grain servers
    std::multimap<Instant, core::Input> delayed_;  // inputs from inside, by the time they are due
    Instant tick_not_before_{};
    std::set<GrainKey> reported_;  // damage that the log has named
    Instant scrub_not_before_{};
    std::set<GrainKey> unpackable_;  // cannot be read
    std::set<SessionKey> stuck_;     // have only such
    Instant pack_not_before_{};      // after a full disk
    Instant old_not_before_{};       // the same, and when sessions are looked through for old ones
    SessionKey old_from_;            // from here on; those before it were looked at
    Instant age_told_{};             // until when the log says that nothing is removed by age
    bool hosts_stale_ = false;       // statistics changed that are not on disk
    bool with_hosts_ = false;        // the commit in flight brings them there
    Instant hosts_not_before_{};
    Instant promised_ = Instant::never();  // when run() was to be called next, at the latest

    store::Room room_ = store::Room::ordinary;  // of the commit in flight

    // of the turn at hand
    Phase phase_ = Phase::open;
    Instant now_{}, commit_begun_{};
    std::vector<Taken> taken_;
    std::size_t taken_bytes_ = 0, taken_weight_ = 0;
    std::size_t answers_weight_ = 0;  // of its effects
    Duration read_for_{};             // that inputs took which changed nothing
    std::size_t followed_ = 0;        // inputs that others led to, and what decisions looked through, all in all
    core::Undo undo_;
    record::TurnChanges changes_;
    std::vector<core::Effect> effects_;
    std::vector<Line> events_;
};

}  // namespace dcs::turn
