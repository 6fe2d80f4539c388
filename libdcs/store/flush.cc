// Syncs what was applied; only then are the roots of turns removed.
#include "base/failpoint.h"
#include "base/require.h"
#include "store/engine.h"
#include "store/names.h"

namespace dcs::store {

Status Engine::note(Status status) {
    if (status || planted("ignore_failed_sync")) return Status::ok();
    doubt_ = true;
    return status;
}

Status Engine::sync_file(const std::string &path) { return note(disk_.sync_file(path)); }
Status Engine::sync_dir(const std::string &path) { return note(disk_.sync_dir(path)); }
Status Engine::sync_all() { return note(disk_.sync_all()); }

bool Engine::over_limits(std::uint64_t times) const {
    return pending_.bytes > times * options_.flush_bytes || turn_ - applied_ >= times * options_.flush_turns;
}

Status Engine::sync_pending() {
    if (planted("no_sync_applied_trees")) return Status::ok();
    const std::size_t count = pending_.files.size() + pending_.directories.size();
    if (count > options_.sync_all_above && disk_.sync_all_reports() && !planted("no_sync_new_dirs")) return sync_all();
    for (const std::string &path : pending_.files)
        if (Status status = sync_file(path); !status) return status;
    for (const std::string &path : pending_.directories) {
        if (planted("no_sync_new_dirs") && !pending_.touched.count(path)) continue;
        if (Status status = sync_dir(path); !status) return status;
    }
    return Status::ok();
}

// On a full disk with the reserve: afterwards the roots are removed, which frees space.
Status Engine::replace_file(const char *temporary, const char *file, const std::string &bytes) {
    Status status = with_reserve(bytes.size() + options_.step_room, [&] {
        Status removed = disk_.remove(temporary);
        return removed ? disk_.create(temporary, bytes) : removed;
    });
    failpoint("store.text_sync.before");
    if (status) status = sync_file(temporary);
    failpoint("store.text_sync.after");
    failpoint("store.text_rename.before");
    if (status) status = disk_.rename(temporary, file);
    failpoint("store.text_rename.after");
    return status;
}

Status Engine::write_stamp(std::uint64_t turn) {
    failpoint("store.stamp.before");
    Status status;
    if (turn == 0 || !planted("no_sync_applied_stamp")) {
        status = replace_file(applied_temporary, applied_file, encode_stamp(turn, layout().block));
        failpoint("store.stamp_sync.before");
        if (status) status = sync_dir(turns_directory);
        failpoint("store.stamp_sync.after");
    } else {
        status = disk_.remove(applied_temporary);
        if (status) status = disk_.create(applied_temporary, encode_stamp(turn, layout().block));
        if (status) status = disk_.rename(applied_temporary, applied_file);
    }
    failpoint("store.stamp.after");
    return status;
}

// A failure without doubt leaves everything pending; it can be retried at any time.
Status Engine::flush_pending() {
    DCS_REQUIRE(applied_ <= turn_, "only committed turns are applied");
    if (turn_ == applied_) return Status::ok();
    if (planted("forget_behind")) behind_ = Behind();
    Status status = catch_up();
    if (!status) return status;
    failpoint("store.flush_trees.before");
    status = sync_pending();
    failpoint("store.flush_trees.after");
    if (status) status = write_stamp(turn_);
    if (!status) return status;
    // From here on the roots are not needed. One that cannot be removed now is removed later.
    for (const auto &[turn, bytes] : pending_.roots) {
        dead_roots_.push_back({root_name(turn), bytes});
        dead_bytes_ += bytes;
    }
    journal_at_ = 0;
    failpoint("store.drop_temporaries.before");
    for (const std::string &name : pending_.temporaries)
        if (!disk_.remove(name)) leftovers_.push_back(name);
    failpoint("store.drop_temporaries.after");
    applied_ = turn_;
    pending_ = Pending();
    return Status::ok();
}

void Engine::drop_roots(std::size_t most) {
    if (dead_roots_.empty()) return;
    failpoint("store.drop_roots.before");
    for (; most > 0 && !dead_roots_.empty(); --most) {
        const DeadRoot &root = dead_roots_.front();
        DCS_REQUIRE(dead_bytes_ >= root.bytes, "the sum covers all dead roots");
        dead_bytes_ -= root.bytes;
        if (!disk_.remove(root.name)) leftovers_.push_back(root.name);
        dead_roots_.pop_front();
    }
    failpoint("store.drop_roots.after");
}

CommitResult Engine::flush() {
    const CommitResult result = sync_away();
    if (result.answer == Answer::done && result.status) drop_roots(dead_roots_.size());
    return result;
}

CommitResult Engine::sync_away() {
    if (!broken_) return {Answer::unknown, broken_};
    Status status = flush_pending();
    if (doubt_) {
        broken_ = status;
        return {Answer::unknown, status};
    }
    return {Answer::done, status};
}

}  // namespace dcs::store
