#pragma once
// The implementation of Store, a class with its files by subject: plan.cc (the steps of a turn),
// commit.cc (steps up to the commit), journal_turns.cc (a commit into the journal, and what recovery
// finds there), apply.cc (the steps after it, also replayed), catch_up.cc (applying in groups), flush.cc
// (syncing and dropping roots), reserve.cc (a full disk), recover.cc (open), damage.cc (how open
// handles damage).
#include <deque>
#include <set>
#include <string>
#include <vector>

#include "store/behind.h"
#include "store/journal.h"
#include "store/pending.h"
#include "store/stamp.h"
#include "store/store.h"
#include "store/turn_root.h"

namespace dcs::store {

// A turn in the order of application: one step per file, without steps that a later removal undoes.
struct TurnPlan {
    std::vector<Step> steps;
    std::deque<std::string> joined;  // bytes of steps that combine several updates
    std::string root;
    bool in_journal = false;       // else the root is a file
    std::uint64_t root_bytes = 0;  // of new disk space
    std::uint64_t big_bytes = 0;   // beside the root: in temporaries, or placed
    std::uint64_t placed_bytes = 0;
    std::uint64_t all_bytes = 0;
    bool flush_first = false;
};

class Engine final : public Store {
public:
    Engine(Disk &disk, const Forest &forest, StoreOptions options);

    CommitResult commit(const std::vector<TreeUpdate> &updates, Room room) override;
    CommitResult commit_copied(std::uint64_t turn, std::string_view root) override;
    CommitResult flush() override;
    void retire_journal() override;
    Status set_aside(const std::string &directory, const std::string &why) override;
    std::uint64_t turn() const override { return turn_; }
    std::uint64_t pending_bytes() const override { return pending_.bytes + dead_bytes_; }
    Result<Space> space() override;
    Result<std::string> read(const std::string &path, std::uint64_t offset, std::uint64_t max) override;
    Result<std::uint64_t> read_into(const std::string &path, std::uint64_t offset, std::span<char> room) override;
    Result<std::vector<std::string>> list(const std::string &directory) override;

    Status recover(RecoveryReport &report);

private:
    bool planted(std::string_view bug) const { return options_.plant == bug; }
    RootLayout layout() const {
        return planted("heads_in_one_block") ? RootLayout{1, options_.layout.twice_limit} : options_.layout;
    }

    // plan.cc
    Status plan(const std::vector<TreeUpdate> &updates, TurnPlan &plan) const;
    Status place(TurnPlan &plan) const;
    Result<bool> goes_in_place(const Step &step, const std::string &path) const;
    Status check_not_set_aside(const Step &step) const;
    Result<std::uint64_t> length_now(const std::string &path) const;

    // commit.cc
    bool may_commit();
    CommitResult commit_planned(TurnPlan &planned, Room room);
    Status reach_commit(const TurnPlan &plan, Room room);
    Status prepare(const TurnPlan &plan);
    Status write_beside(const Step &step);
    Status sync_prepared(const TurnPlan &plan);
    Status write_root(const TurnPlan &plan);
    Status write_root_file(const TurnPlan &plan);
    CommitResult after_commit(const TurnPlan &plan);
    void discard_prepared();
    CommitResult give_up(const Status &status);
    Status remove_leftovers();
    void remember_turn(const TurnPlan &plan);

    // journal_turns.cc
    Status choose_root(TurnPlan &plan);
    Status place_in_journal(TurnPlan &plan);
    Status make_journal();
    Status write_into_journal(const TurnPlan &plan);
    Status take_journal();
    std::string where_is(std::uint64_t turn) const;
    Result<std::string> read_root(std::uint64_t turn);

    // catch_up.cc
    bool may_lag(const TurnPlan &plan) const;
    bool lags_too_far() const;
    void put_behind(const TurnPlan &plan);
    Status catch_up();

    // apply.cc
    Status apply(const Step &step, std::uint64_t turn);
    Status apply_once(const Step &step, std::uint64_t turn);
    Status apply_replace(const Step &step, std::uint64_t turn);
    Status apply_append(const Step &step, std::uint64_t turn);
    Status apply_remove(const std::string &directory);
    Status make_directories(const std::string &directory, std::vector<std::string> *made);
    void forget_below(const std::string &directory);

    // flush.cc
    Status flush_pending();
    CommitResult sync_away();  // flush_pending() as a CommitResult
    void drop_roots(std::size_t most);
    Status sync_pending();
    Status write_stamp(std::uint64_t turn);
    Status replace_file(const char *temporary, const char *file, const std::string &bytes);
    bool over_limits(std::uint64_t times) const;
    // These three note a failure as doubt: no commit may be acknowledged after it.
    Status sync_file(const std::string &path);
    Status sync_dir(const std::string &path);
    Status sync_all();
    Status note(Status status);

    // reserve.cc
    Status check_files(const TurnPlan &plan, Room room);
    Status check_space(const TurnPlan &plan, Room room);
    Status use_reserve(std::uint64_t free, std::uint64_t before, std::uint64_t after);
    Status grow_reserve();
    bool shrink_reserve(std::uint64_t bytes);
    template <class Do> Status with_reserve(std::uint64_t bytes, const Do &act);
    Status check_reserve();

    // recover.cc
    Status create_store(const std::vector<std::string> &present);
    struct Found {
        bool root = false, lost = false;  // files
        std::string name;                 // for people
    };
    Status find_roots(std::vector<std::string> &stale, RecoveryReport &report);
    Status number_turns(const std::map<std::uint64_t, Found> &found);
    Status check_root(std::uint64_t turn, std::set<std::string> &temporaries, RecoveryReport &report);
    Result<std::string> read_whole(const std::string &path);
    Status discard_strays(const std::string &directory, const std::set<std::string> &keep, int depth,
                          RecoveryReport &report);
    Status discard(const std::vector<std::string> &stale, const std::set<std::string> &keep, RecoveryReport &report);
    Status replay(std::uint64_t turn, RecoveryReport &report);
    Status replay_step(const Step &step, std::uint64_t turn, RecoveryReport &report);
    Status replay_all(RecoveryReport &report);

    // damage.cc
    Status read_format_and_stamp(RecoveryReport &report);
    Status check_stamp_missing(const std::vector<std::string> &names) const;
    Status repair_format_and_stamp();
    Result<std::string> what_is_wrong(const Step &step, std::uint64_t turn);
    Status set_aside(const std::string &directory, std::uint64_t turn, const std::string &what, RecoveryReport &report);
    Status resync_markers();
    Status report_markers(RecoveryReport &report);
    Status keep_lost_roots();

    Disk &disk_;
    const Forest forest_;
    const StoreOptions options_;
    std::uint64_t turn_ = 0;     // last committed
    std::uint64_t applied_ = 0;  // last turn whose effects are synced; the roots above it exist
    Pending pending_;
    Behind behind_;
    bool journal_made_ = false;     // by this process, and durable
    std::uint64_t journal_at_ = 0;  // where its next turn goes
    std::uint64_t reserve_ = 0;     // its present size in bytes
    // Directories that are known to exist; cleared when there are too many.
    std::set<std::string, std::less<>> known_;
    std::set<std::string, std::less<>> set_aside_;  // directories with a marker
    // For recovery:
    std::set<std::uint64_t> lost_;                        // turns above applied_ that are given up
    std::map<std::uint64_t, JournalTurn> journal_turns_;  // turns above applied_ whose root is not a file
    std::uint64_t highest_ = 0;                           // highest number in any name
    bool rewrite_format_ = false, rewrite_stamp_ = false, stamp_lost_ = false;
    bool recovering_ = false;
    bool doubt_ = false;                    // a sync failed, or an error left the result of a call unknown
    Status broken_;                         // the reason why every call answers unknown
    std::vector<std::string> temporaries_;  // of the turn being prepared
    std::vector<std::string> directories_;  // created for it
    // Roots of flushed turns. Removing hundreds at once takes a second or two on a file system that discards
    // blocks, so a few are removed with each commit, and the rest in an idle moment.
    struct DeadRoot {
        std::string name;
        std::uint64_t bytes;
    };
    std::deque<DeadRoot> dead_roots_;
    std::uint64_t dead_bytes_ = 0;        // of all of them
    std::vector<std::string> leftovers_;  // could not be removed; retried before the next commit
    std::vector<std::string> leftover_directories_;
};

// Runs an operation that must not be postponed; on a full disk with more and more of the reserve.
template <class Do> Status Engine::with_reserve(std::uint64_t bytes, const Do &act) {
    Status status = act();
    for (; status.code == Code::no_space && shrink_reserve(bytes); bytes *= 2) status = act();
    return status;
}

}  // namespace dcs::store
