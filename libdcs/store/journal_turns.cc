// Turns in the journal: the commit of one, and what recovery finds there.
#include <algorithm>

#include "base/failpoint.h"
#include "base/require.h"
#include "store/engine.h"
#include "store/names.h"

namespace dcs::store {

// New each time: what an interrupted turn has left in the old one is gone with it. A directory that is not synced may
// show the old one after a power failure; all that it has is either applied or was discarded.
Status Engine::make_journal() {
    Result<std::uint64_t> free = disk_.free_bytes();
    if (!free || *free / 2 < options_.journal_bytes || reserve_ != options_.reserve_bytes) return Status::ok();
    failpoint("store.journal_make.before");
    Status status = disk_.remove(journal_file);
    if (status) status = disk_.create(journal_file, std::string(options_.journal_bytes, '\0'));
    if (status) status = sync_file(journal_file);
    if (status) status = sync_dir(turns_directory);
    failpoint("store.journal_make.after");
    if (!status) (void)disk_.remove(journal_file);
    journal_made_ = static_cast<bool>(status);
    journal_at_ = 0;
    return doubt_ ? status : Status::ok();
}

Status Engine::place_in_journal(TurnPlan &plan) {
    const RootLayout whole{layout().block, 0, true};
    const std::size_t most = std::min(options_.journal_turn_bytes, options_.journal_bytes);
    if (plan.all_bytes - plan.big_bytes > most / 2) return Status::ok();
    plan.root = encode_turn(turn_ + 1, plan.steps, whole);
    const std::size_t bytes = journal_bytes_for(plan.root.size(), whole.block);
    if (bytes > most) return Status::ok();
    if (!journal_made_)
        if (Status status = make_journal(); !status || !journal_made_) return status;
    if (journal_at_ + bytes > options_.journal_bytes) {
        if (planted("reuse_journal_early")) journal_at_ = 0;
        // What no flush makes room for, a file may still take.
        else if (Status status = flush_pending(); !status) return doubt_ ? status : Status::ok();
    }
    plan.in_journal = true;
    return Status::ok();
}

Status Engine::choose_root(TurnPlan &plan) {
    if (options_.journal_bytes > 0)
        if (Status status = place_in_journal(plan); !status || plan.in_journal) return status;
    plan.root = encode_turn(turn_ + 1, plan.steps, layout());
    plan.root_bytes = plan.root.size();
    return Status::ok();
}

// After a write that fails halfway, a crash may or may not find the turn complete.
Status Engine::write_into_journal(const TurnPlan &plan) {
    const std::string record = encode_for_journal(turn_ + 1, plan.root, layout().block);
    DCS_REQUIRE(journal_at_ + record.size() <= options_.journal_bytes, "the journal keeps its length");
    failpoint("store.journal_write.before");
    Status status = disk_.overwrite(journal_file, journal_at_, record);
    failpoint("store.journal_write.after");
    if (!status && status.code != Code::limit) doubt_ = true;
    failpoint("store.journal_sync.before");
    if (status && !planted("no_sync_journal")) status = sync_file(journal_file);
    failpoint("store.journal_sync.after");
    if (!status) return status;
    journal_at_ += record.size();
    pending_.bytes += record.size();
    return status;
}

void Engine::retire_journal() {
    if (!journal_made_ || !broken_ || turn_ != applied_) return;
    journal_made_ = !disk_.remove(journal_file);
}

// Finds the turns of the journal that are not applied yet. What recovery will act on is written again and synced
// first: after a kill it may never have been synced, and after a failed sync it is in the page cache only.
Status Engine::take_journal() {
    Result<std::string> file = read_whole(journal_file);
    if (!file && file.status().code == Code::not_found) return Status::ok();
    if (!file) return fail(file.status().code, std::string(journal_file) + ": " + file.status().text);
    const bool old_ones = planted("replay_old_turns");
    const bool check_sums = !planted("skip_root_checksum");
    JournalTurns found = read_journal(*file, old_ones ? 0 : applied_, layout().block, check_sums);
    if (stamp_lost_ && found.any)
        return fail(Code::io_error, std::string(applied_file) + " cannot be read while " + journal_file +
                                        " contains turns: nothing was changed, restore the state directory from a "
                                        "backup");
    if (found.turns.empty()) return Status::ok();
    if (old_ones && found.turns.begin()->first <= applied_) applied_ = turn_ = found.turns.begin()->first - 1;
    journal_turns_ = std::move(found.turns);
    if (planted("trust_visible_journal")) return Status::ok();
    failpoint("store.recover_journal.before");
    Status status = disk_.overwrite(journal_file, 0, std::string_view(*file).substr(0, found.used));
    if (status) status = sync_file(journal_file);
    failpoint("store.recover_journal.after");
    return status;
}

std::string Engine::where_is(std::uint64_t turn) const {
    if (!journal_turns_.count(turn)) return root_name(turn);
    return std::string(journal_file) + ", turn " + std::to_string(turn);
}

Result<std::string> Engine::read_root(std::uint64_t turn) {
    const auto found = journal_turns_.find(turn);
    if (found == journal_turns_.end()) return read_whole(root_name(turn));
    if (found->second.root.empty()) return fail(Code::io_error, "both copies of a part of it are damaged");
    return found->second.root;
}

}  // namespace dcs::store
