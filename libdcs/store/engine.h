#pragma once
// The one implementation of Store. One class, its files by subject: plan.cc (what a turn does),
// commit.cc (steps up to the commit), apply.cc (the steps after it, also replayed), flush.cc
// (syncing and dropping roots), reserve.cc (a full disk), recover.cc (open).
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "store/pending.h"
#include "store/store.h"
#include "store/turn_root.h"

namespace dcs::store {

// A turn, in the order of application, without steps that a later one of the turn undoes.
struct TurnPlan {
    std::vector<Step> steps;
    std::uint64_t big_bytes = 0;   // in temporaries beside the root
    std::uint64_t all_bytes = 0;
    bool flush_first = false;
};

class Engine final : public Store {
public:
    Engine(Disk &disk, const Forest &forest, StoreOptions options);

    CommitResult commit(const std::vector<TreeUpdate> &updates) override;
    CommitResult flush() override;
    std::uint64_t turn() const override { return turn_; }
    std::uint64_t pending_bytes() const override { return pending_.bytes; }
    Result<Room> room() override;
    Result<std::string> read(const std::string &path, std::uint64_t offset,
                             std::uint64_t max) override;
    Result<std::vector<std::string>> list(const std::string &directory) override;

    Status recover(RecoveryReport &report);

private:
    bool planted(Plant bug) const { return (options_.plant & bug) != 0; }

    // plan.cc
    Result<TurnPlan> plan(const std::vector<TreeUpdate> &updates) const;
    void flatten(const TreeUpdate &update, std::vector<Step> &steps) const;
    Status place(TurnPlan &plan) const;
    Result<std::uint64_t> length_now(const std::string &path) const;

    // commit.cc
    Status prepare(const TurnPlan &plan);
    Status prepare_big(const Step &step);
    Status sync_big_directories(const TurnPlan &plan);
    Status write_root(const TurnPlan &plan);
    CommitResult give_up(const Status &status);
    Status remove_leftovers();
    void remember_turn(const TurnPlan &plan);

    // apply.cc
    Status apply(const Step &step, std::uint64_t turn);
    Status apply_once(const Step &step, std::uint64_t turn);
    Status apply_replace(const Step &step, std::uint64_t turn);
    Status apply_append(const Step &step, std::uint64_t turn);
    Status apply_remove(const std::string &directory);
    Status remove_tree(const std::string &directory, int depth);
    Status make_directories(const std::string &directory, std::vector<std::string> *made);

    // flush.cc
    Status flush_pending();
    Status sync_pending();
    Status write_stamp(std::uint64_t turn);
    bool over_limits(std::uint64_t times) const;
    // These three note a failure as doubt: nothing may be acknowledged after it.
    Status sync_file(const std::string &path);
    Status sync_dir(const std::string &path);
    Status sync_all();
    Status note(Status status);

    // reserve.cc
    Status check_space(const TurnPlan &plan);
    Status make_reserve();
    bool release_reserve();

    // recover.cc
    Status create_store(const std::vector<std::string> &present);
    Status check_format();
    Status read_stamp();
    Status find_roots(std::vector<std::string> &stale, RecoveryReport &report);
    Result<std::string> read_whole(const std::string &path);
    Status verify_root(std::uint64_t turn, std::set<std::string> &temporaries);
    Status verify_big(const Step &step, std::uint64_t turn);
    Status discard_strays(const std::string &directory, const std::set<std::string> &keep,
                          int depth, RecoveryReport &report);
    Status replay(std::uint64_t turn, RecoveryReport &report);
    Status set_aside(const std::string &path, std::uint64_t turn, RecoveryReport &report);
    void check_reserve();

    Disk &disk_;
    const Forest forest_;
    const StoreOptions options_;
    std::uint64_t turn_ = 0;     // last committed
    std::uint64_t applied_ = 0;  // last one whose effects are synced; the roots above it exist
    Pending pending_;
    bool reserve_ = false;
    bool recovering_ = false;
    bool doubt_ = false;         // a sync failed, or an error after which the disk may say either
    Status broken_;              // why every call answers unknown
    std::vector<std::string> temporaries_;   // of the turn being prepared
    std::vector<std::string> directories_;   // made for it
    std::vector<std::string> leftovers_;     // could not be removed; before the next commit
    std::vector<std::string> leftover_directories_;
};

}  // namespace dcs::store
