// The steps up to and including the commit, and what happens when one of them fails.
#include "store/engine.h"
#include "store/names.h"

namespace dcs::store {

Engine::Engine(Disk &disk, const Forest &forest, StoreOptions options)
    : disk_(disk), forest_(forest), options_(options) {}

// Creates the temporary of a big node, and the directories it needs.
Status Engine::prepare_big(const Step &step) {
    if (Status status = make_directories(step.directory, &directories_); !status) return status;
    const std::string name = big_temporary(step.directory, step.file, turn_ + 1);
    temporaries_.push_back(name);
    if (Status status = disk_.create(name, step.bytes); !status) return status;
    if (planted(plant_no_sync_temp)) return Status::ok();
    return sync_file(name);
}

// The names of the big temporaries, and of every directory on the way that is not durable yet.
Status Engine::sync_big_directories(const TurnPlan &plan) {
    std::set<std::string> to_sync;
    for (const Step &step : plan.steps) {
        if (step.kind != StepKind::beside) continue;
        if (!planted(plant_no_sync_temp_dir)) to_sync.insert(step.directory);
        if (planted(plant_no_sync_new_dirs)) continue;
        for (std::string d = step.directory; !d.empty(); d = parent_of(d))
            if (pending_.fresh.count(d)) to_sync.insert(parent_of(d));
    }
    for (const std::string &directory : to_sync)
        if (Status status = sync_dir(directory); !status) return status;
    return Status::ok();
}

Status Engine::prepare(const TurnPlan &plan) {
    for (const Step &step : plan.steps)
        if (step.kind == StepKind::beside)
            if (Status status = prepare_big(step); !status) return status;
    return sync_big_directories(plan);
}

// The commit itself. Until the rename succeeds the turn has not happened.
Status Engine::write_root(const TurnPlan &plan) {
    const std::uint64_t number = turn_ + 1;
    const std::string temporary = root_temporary(number);
    const std::string root = encode_turn(number, plan.steps);
    temporaries_.push_back(temporary);
    Status status = disk_.create(temporary, root);
    if (status && !planted(plant_no_sync_root)) status = sync_file(temporary);
    if (!status) return status;
    status = disk_.rename(temporary, root_name(number));
    // No room or no descriptor: refused before anything changed. Anything else may have happened.
    if (!status && status.code != Code::no_space && status.code != Code::limit) doubt_ = true;
    if (status && !planted(plant_no_sync_commit)) status = sync_dir(turns_directory);
    if (status) pending_.bytes += root.size() + plan.big_bytes;
    return status;
}

// Before the commit: everything goes back to what it was. After a failure that leaves doubt:
// nothing is touched any more, the next start decides by what is on the disk.
CommitResult Engine::give_up(const Status &status) {
    if (doubt_) {
        broken_ = status;
        return {Answer::unknown, status};
    }
    leftovers_.insert(leftovers_.end(), temporaries_.begin(), temporaries_.end());
    leftover_directories_.insert(leftover_directories_.end(), directories_.rbegin(),
                                 directories_.rend());
    temporaries_.clear();
    directories_.clear();
    (void)remove_leftovers();  // tried again before the next commit
    return {Answer::nothing, status};
}

Status Engine::remove_leftovers() {
    while (!leftovers_.empty()) {
        if (Status status = disk_.remove(leftovers_.back()); !status) return status;
        leftovers_.pop_back();
    }
    // Deepest first. One that is in use meanwhile stays.
    while (!leftover_directories_.empty()) {
        const std::string directory = leftover_directories_.front();
        Status status = disk_.remove_dir(directory);
        if (!status && status.code != Code::refused) return status;
        if (status) pending_.forget_below(directory);
        leftover_directories_.erase(leftover_directories_.begin());
    }
    return Status::ok();
}

void Engine::remember_turn(const TurnPlan &plan) {
    for (const Step &step : plan.steps) {
        if (step.kind == StepKind::remove) {
            pending_.removed.insert(step.directory);
            continue;
        }
        if (step.kind == StepKind::noted) continue;
        pending_.touched.insert(step.directory);
        if (step.kind != StepKind::beside) continue;
        pending_.big.insert(step.path());
        pending_.temporaries.push_back(big_temporary(step.directory, step.file, turn_));
    }
    temporaries_.clear();
    directories_.clear();
}

CommitResult Engine::commit(const std::vector<TreeUpdate> &updates) {
    if (!broken_) return {Answer::unknown, broken_};
    Result<TurnPlan> planned = plan(updates);
    if (!planned) return {Answer::nothing, planned.status()};
    if (planned->steps.empty()) return {Answer::done, Status::ok()};

    Status status = remove_leftovers();
    // A flush that was put off for want of room or descriptors must not be put off for ever.
    if (status && (planned->flush_first || over_limits(2))) status = flush_pending();
    if (status) status = check_space(*planned);
    if (status) status = prepare(*planned);
    if (status) status = write_root(*planned);
    if (!status) return give_up(status);

    ++turn_;
    remember_turn(*planned);
    for (const Step &step : planned->steps) {
        if (status = apply(step, turn_); status) continue;
        broken_ = status;
        return {Answer::unknown, status};
    }
    if (planted(plant_drop_temps_early)) {
        for (const std::string &name : pending_.temporaries) (void)disk_.remove(name);
        pending_.temporaries.clear();
    }
    if (over_limits(1)) {
        const CommitResult flushed = flush();
        if (flushed.answer != Answer::done) return flushed;
    }
    return {Answer::done, Status::ok()};
}

Result<std::string> Engine::read(const std::string &path, std::uint64_t offset, std::uint64_t max) {
    return disk_.read(path, offset, max);
}

Result<std::vector<std::string>> Engine::list(const std::string &directory) {
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
