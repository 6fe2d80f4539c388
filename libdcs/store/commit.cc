// The steps up to and including the commit, and the handling of their failures.
#include <algorithm>

#include "base/failpoint.h"
#include "base/require.h"
#include "store/engine.h"
#include "store/names.h"

namespace dcs::store {
namespace {

bool has_bytes_beside(const Step &step) { return step.kind == StepKind::beside || step.kind == StepKind::placed; }

}  // namespace

Engine::Engine(Disk &disk, const Forest &forest, StoreOptions options)
    : disk_(disk), forest_(forest), options_(options) {}

// Writes the bytes of a big node: in place, or into a temporary, with the directories it needs.
Status Engine::write_beside(const Step &step) {
    if (step.kind == StepKind::placed) {
        failpoint("store.placed_write.before");
        Status status = disk_.rewrite(step.path(), step.bytes);
        failpoint("store.placed_write.after");
        return status;
    }
    if (Status status = make_directories(std::string(step.directory), &directories_); !status) return status;
    const std::string name = big_temporary(step.directory, step.file, turn_ + 1);
    temporaries_.push_back(name);
    failpoint("store.temporary_write.before");
    Status status = disk_.create(name, step.bytes);
    failpoint("store.temporary_write.after");
    return status;
}

// Syncs what was written beside the root, its names, and those of all directories above that are not durable yet.
Status Engine::sync_prepared(const TurnPlan &plan) {
    std::vector<std::string> files;
    std::set<std::string> directories;
    for (const Step &step : plan.steps) {
        if (!has_bytes_beside(step)) continue;
        if (step.kind == StepKind::placed) {
            if (!planted("no_sync_placed")) files.push_back(step.path());
            continue;
        }
        if (!planted("no_sync_temp")) files.push_back(big_temporary(step.directory, step.file, turn_ + 1));
        if (!planted("no_sync_temp_dir")) directories.emplace(step.directory);
        if (planted("no_sync_new_dirs")) continue;
        for (std::string d(step.directory); !d.empty(); d = parent_of(d))
            if (pending_.fresh.count(d)) directories.insert(parent_of(d));
    }
    const bool all = files.size() + directories.size() > options_.sync_all_above && disk_.sync_all_reports();
    failpoint("store.temporary_sync.before");
    if (all && options_.plant.empty()) {
        Status status = sync_all();
        failpoint("store.temporary_sync.after");
        return status;
    }
    for (const std::string &name : files)
        if (Status status = sync_file(name); !status) return status;
    failpoint("store.temporary_sync.after");
    for (const std::string &directory : directories) {
        failpoint("store.temporary_directory_sync.before");
        if (Status status = sync_dir(directory); !status) return status;
        failpoint("store.temporary_directory_sync.after");
    }
    return Status::ok();
}

Status Engine::prepare(const TurnPlan &plan) {
    if (plan.big_bytes == 0) return Status::ok();
    for (const Step &step : plan.steps)
        if (has_bytes_beside(step))
            if (Status status = write_beside(step); !status) return status;
    return sync_prepared(plan);
}

// The commit itself.
Status Engine::write_root(const TurnPlan &plan) {
    DCS_REQUIRE(!plan.root.empty(), "a turn has a root");
    Status status = plan.in_journal ? write_into_journal(plan) : write_root_file(plan);
    if (status) pending_.bytes += plan.big_bytes - plan.placed_bytes;
    return status;
}

// Before the rename the turn has no effect.
Status Engine::write_root_file(const TurnPlan &plan) {
    const std::string temporary = root_temporary(turn_ + 1);
    temporaries_.push_back(temporary);
    failpoint("store.root_write.before");
    Status status = disk_.create(temporary, plan.root);
    failpoint("store.root_write.after");
    failpoint("store.root_sync.before");
    if (status && !planted("no_sync_root")) status = sync_file(temporary);
    failpoint("store.root_sync.after");
    if (!status) return status;
    failpoint("store.root_rename.before");
    status = disk_.rename(temporary, root_name(turn_ + 1));
    failpoint("store.root_rename.after");
    // No space or no descriptor: refused before any change. After any other error the rename may have happened.
    if (!status && status.code != Code::no_space && status.code != Code::limit) doubt_ = true;
    failpoint("store.commit_sync.before");
    if (status && !planted("no_sync_commit")) status = sync_dir(turns_directory);
    failpoint("store.commit_sync.after");
    if (!status) return status;
    pending_.roots[turn_ + 1] = plan.root.size();
    pending_.bytes += plan.root.size();
    return status;
}

// Free space, also that given up by the reserve, may be used by another program before the turn needs it. Retries with
// the rest of the reserve.
Status Engine::reach_commit(const TurnPlan &plan, Room room) {
    constexpr int attempts = 4;
    for (int attempt = 1;; ++attempt) {
        Status status = check_space(plan, room);
        if (!status) return status;
        status = prepare(plan);
        if (status) status = write_root(plan);
        const bool again = status.code == Code::no_space && room == Room::reserve && reserve_ > 0 && !doubt_;
        if (status || !again || attempt == attempts) return status;
        discard_prepared();
        if (Status removed = remove_leftovers(); !removed) return status;
    }
}

void Engine::discard_prepared() {
    leftovers_.insert(leftovers_.end(), temporaries_.begin(), temporaries_.end());
    leftover_directories_.insert(leftover_directories_.end(), directories_.rbegin(), directories_.rend());
    temporaries_.clear();
    directories_.clear();
}

// A failure before the commit: reverts everything. After a failure that leaves the state in doubt nothing is touched;
// the next start decides by the content of the disk.
CommitResult Engine::give_up(const Status &status) {
    if (doubt_) {
        broken_ = status;
        return {Answer::unknown, status};
    }
    discard_prepared();
    (void)remove_leftovers();  // retried before the next commit
    return {Answer::nothing, status};
}

Status Engine::remove_leftovers() {
    while (!leftovers_.empty()) {
        if (Status status = disk_.remove(leftovers_.back()); !status) return status;
        leftovers_.pop_back();
    }
    // Deepest first. A directory that is in use by now stays.
    while (!leftover_directories_.empty()) {
        const std::string directory = leftover_directories_.front();
        Status status = disk_.remove_dir(directory);
        if (!status && status.code != Code::refused) return status;
        if (status) forget_below(directory);
        leftover_directories_.erase(leftover_directories_.begin());
    }
    return Status::ok();
}

void Engine::remember_turn(const TurnPlan &plan) {
    for (const Step &step : plan.steps) {
        if (step.kind == StepKind::remove) {
            pending_.removed.emplace(step.directory);
            continue;
        }
        if (step.kind == StepKind::noted) continue;
        pending_.touched.emplace(step.directory);
        if (step.kind != StepKind::beside) continue;
        pending_.big.insert(step.path());
        pending_.temporaries.push_back(big_temporary(step.directory, step.file, turn_));
    }
    temporaries_.clear();
    directories_.clear();
}

bool Engine::may_commit() {
    if (broken_ && options_.still_alone && !options_.still_alone())
        broken_ = fail(Code::refused, "the store's lock was removed or replaced, so another process may write to it");
    return static_cast<bool>(broken_);
}

CommitResult Engine::commit(const std::vector<TreeUpdate> &updates, Room room) {
    if (!may_commit()) return {Answer::unknown, broken_};
    TurnPlan planned;
    if (Status status = plan(updates, planned); !status) return {Answer::nothing, status};
    if (planned.steps.empty()) return {Answer::done, Status::ok()};
    return commit_planned(planned, room);
}

CommitResult Engine::commit_planned(TurnPlan &planned, Room room) {
    DCS_REQUIRE(temporaries_.empty() && directories_.empty(), "the previous turn left no temporaries");
    DCS_REQUIRE(!recovering_, "a store accepts turns after its recovery");
    drop_roots(2);  // each commit adds one
    Status status = remove_leftovers();
    // A flush that was postponed for lack of space or descriptors must not be postponed for ever.
    if (status && (planned.flush_first || over_limits(2))) status = flush_pending();
    if (status) status = choose_root(planned);
    if (status) status = reach_commit(planned, planted("reserve_for_all") ? Room::reserve : room);
    if (!status) return give_up(status);

    ++turn_;
    DCS_REQUIRE(planned.in_journal || pending_.roots.count(turn_) == 1, "a turn is committed by its root");
    remember_turn(planned);
    if (options_.committed) options_.committed(turn_, planned.steps);
    return after_commit(planned);
}

CommitResult Engine::after_commit(const TurnPlan &planned) {
    Status status;
    if (may_lag(planned)) {
        put_behind(planned);
        if (lags_too_far()) status = catch_up();
    } else {
        status = catch_up();
        for (const Step &step : planned.steps)
            if (status) status = apply(step, turn_);
    }
    if (!status) {
        broken_ = status;
        return {Answer::unknown, status};
    }
    if (planted("drop_temps_early")) {
        for (const std::string &name : pending_.temporaries) (void)disk_.remove(name);
        pending_.temporaries.clear();
    }
    if (over_limits(1)) {
        if (const CommitResult flushed = sync_away(); flushed.answer != Answer::done) return flushed;
    }
    return {Answer::done, Status::ok()};
}

Result<std::string> Engine::read(const std::string &path, std::uint64_t offset, std::uint64_t max) {
    return behind_.read(disk_, path, offset, max);
}

Result<std::uint64_t> Engine::read_into(const std::string &path, std::uint64_t offset, std::span<char> room) {
    if (!behind_.has(path)) return disk_.read_into(path, offset, room);
    const Result<std::string> bytes = read(path, offset, room.size());
    if (!bytes) return bytes.status();
    std::copy(bytes->begin(), bytes->end(), room.begin());
    return std::uint64_t{bytes->size()};
}

Result<std::vector<std::string>> Engine::list(const std::string &directory) {
    if (behind_.has_below(directory)) {
        if (Status status = catch_up(); !status) {
            broken_ = status;
            return status;
        }
    }
    Result<std::vector<std::string>> all = disk_.list(directory);
    if (!all) return all;
    std::vector<std::string> shown;
    for (std::string &name : *all) {
        const bool is_directory = name.back() == '/';
        const std::string bare = is_directory ? name.substr(0, name.size() - 1) : name;
        if (!is_directory && is_temporary(name)) continue;
        if (directory.empty() && !valid_tree_directory(bare)) continue;
        shown.push_back(std::move(name));
    }
    return shown;
}

}  // namespace dcs::store
