// open(): completes committed turns, discards others.
#include <algorithm>

#include "base/failpoint.h"
#include "store/engine.h"
#include "store/names.h"

namespace dcs::store {
namespace {

Status about(const std::string &file, const Status &status, const char *advice) {
    return fail(status.code, file + ": " + status.text + advice);
}

constexpr const char *restore_it =
    "; it belongs to a committed turn and was left untouched: restore it (or the whole state "
    "directory) from a backup, or start once with its number as the lost turn to accept";

}  // namespace

Result<std::string> Engine::read_whole(const std::string &path) {
    Result<std::uint64_t> size = disk_.size(path);
    if (!size) return size.status();
    Result<std::string> bytes = disk_.read(path, 0, *size);
    if (bytes && bytes->size() != *size) return fail(Code::io_error, "it became shorter while it was read");
    return bytes;
}

// The format file is last, because it marks the store as complete.
Status Engine::create_store(const std::vector<std::string> &present) {
    for (const std::string &name : present)
        if (name != lock_file && name != "turns/" && name != "lost+found/" && name != format_temporary &&
            name != reserve_file)
            return fail(Code::invalid, "the directory has no format file but contains `" + name +
                                           "`: it is not a backing store, use an empty directory");
    if (Result<bool> made = disk_.make_dir(turns_directory); !made) return made.status();
    Result<std::vector<std::string>> turns = disk_.list(turns_directory);
    if (!turns) return turns.status();
    for (const std::string &name : *turns)
        if (name != "applied" && name != "applied.tmp")
            return fail(Code::invalid,
                        "the directory has no format file but contains `turns/" + name + "`: restore it from a backup");
    Status status = write_stamp(0);
    if (status) status = sync_dir("");
    if (status) status = replace_file(format_temporary, format_file, encode_format(layout().block));
    if (status) status = sync_dir("");
    return status;
}

// Finds the committed turns above the stamp, in files and in the journal. Everything else in turns/ is stale.
Status Engine::find_roots(std::vector<std::string> &stale, RecoveryReport &report) {
    Result<std::vector<std::string>> names = disk_.list(turns_directory);
    if (!names) return names.status();
    if (stamp_lost_)
        if (Status status = check_stamp_missing(*names); !status) return status;
    std::map<std::uint64_t, Found> found;
    for (const std::string &name : *names) {
        std::uint64_t number = turn_of_temporary(name);
        const bool root = parse_root_name(name, number), lost = parse_lost_name(name, number);
        highest_ = std::max(highest_, number);
        if (stamp_lost_ && lost) continue;
        if ((root || lost) && number > applied_) {
            Found &turn = found[number];
            (root ? turn.root : turn.lost) = true;
            if (turn.name.empty()) turn.name = name;  // ".commit" sorts first
        } else if (root || is_temporary(name)) {
            stale.push_back(join(turns_directory, name));
            if (!root) ++report.temporaries_discarded;
        }
    }
    // The last turn is incomplete if a crash interrupted its writing; an earlier one is damaged.
    const std::uint64_t last_file = found.empty() ? 0 : found.rbegin()->first;
    if (!journal_turns_.empty()) {
        const auto last = std::prev(journal_turns_.end());
        if (last->second.root.empty() && last->first > last_file) journal_turns_.erase(last);
    }
    for (auto it = journal_turns_.begin(); it != journal_turns_.end();) {
        highest_ = std::max(highest_, it->first);
        Found &turn = found[it->first];
        if (!turn.root && turn.name.empty()) turn.name = where_is(it->first);
        it = turn.root ? journal_turns_.erase(it) : std::next(it);
    }
    return number_turns(found);
}

// They have no gaps but those that were given up.
Status Engine::number_turns(const std::map<std::uint64_t, Found> &found) {
    for (const auto &[number, turn] : found) {
        if (number == turn_ + 2 && options_.accept_lost_turn == turn_ + 1) lost_.insert(++turn_);
        if (number > turn_ + 1)
            return fail(Code::io_error,
                        root_name(turn_ + 1) + " is missing, but " + turn.name + " exists" + restore_it);
        if (turn.lost && !turn.root) lost_.insert(number);
        turn_ = number;
    }
    return Status::ok();
}

Status Engine::check_root(std::uint64_t turn, std::set<std::string> &temporaries, RecoveryReport &report) {
    const std::string name = where_is(turn);
    if (lost_.count(turn)) {
        report.damaged.push_back({name, "it is lost and was given up"});
        return Status::ok();
    }
    const bool in_journal = journal_turns_.count(turn) != 0;
    Result<std::string> root = read_root(turn);
    if (!root && !in_journal) return about(name, root.status(), restore_it);
    Result<DecodedTurn> decoded =
        root ? decode_turn(*root, turn, !planted("skip_root_checksum")) : Result<DecodedTurn>(root.status());
    if (!decoded && decoded.status().code == Code::io_error && options_.accept_lost_turn == turn) {
        lost_.insert(turn);
        report.damaged.push_back({name, decoded.status().text + "; given up, kept as " + lost_name(turn)});
        return Status::ok();
    }
    if (!decoded) return about(name, decoded.status(), restore_it);
    if (!decoded->repaired.empty())
        report.damaged.push_back({name, decoded->repaired + "; the other copy is valid, so nothing is lost"});
    if (in_journal && journal_turns_[turn].repaired && turn < turn_)
        report.damaged.push_back({journal_file, "a block of turn " + std::to_string(turn) +
                                                    " is damaged; its other copy is valid, so nothing is lost"});
    pending_.bytes += root->size();
    if (!in_journal) pending_.roots[turn] = root->size();
    for (const Step &step : decoded->steps)
        if (step.kind == StepKind::beside) temporaries.insert(big_temporary(step.directory, step.file, turn));
    return Status::ok();
}

// Discards temporaries of turns that were never committed, and empty directories.
Status Engine::discard_strays(const std::string &directory, const std::set<std::string> &keep, int depth,
                              RecoveryReport &report) {
    if (depth > deepest)
        return fail(Code::io_error, directory + " is nested too deeply for a backing store: move it away");
    Result<std::vector<std::string>> names = disk_.list(directory);
    if (!names) return names.status();
    for (const std::string &name : *names) {
        const bool is_directory = name.back() == '/';
        if (name == damage_marker && depth > 0) set_aside_.insert(directory);
        const std::string path = join(directory, is_directory ? name.substr(0, name.size() - 1) : name);
        if (depth == 0 && !valid_tree_directory(path) && !is_temporary(path)) continue;
        if (is_directory) {
            if (path == "lost+found") continue;
            Status status = discard_strays(path, keep, depth + 1, report);
            if (!status) return status;
            status = disk_.remove_dir(path);
            if (!status && status.code != Code::refused) return status;
        } else if (is_temporary(name) && !keep.count(path)) {
            highest_ = std::max(highest_, turn_of_temporary(name));
            if (Status status = disk_.remove(path); !status) return status;
            ++report.temporaries_discarded;
        }
    }
    return Status::ok();
}

Status Engine::discard(const std::vector<std::string> &stale, const std::set<std::string> &keep,
                       RecoveryReport &report) {
    failpoint("store.recover_discard.before");
    Status status;
    for (const std::string &path : stale)
        if (status) status = disk_.remove(path);
    if (status && !planted("keep_strays")) status = discard_strays("", keep, 0, report);
    failpoint("store.recover_discard.after");
    return status;
}

Status Engine::replay_step(const Step &step, std::uint64_t turn, RecoveryReport &report) {
    if (step.kind == StepKind::noted || step.kind == StepKind::placed) return Status::ok();
    const std::string directory(step.directory);
    if (step.kind == StepKind::remove) return apply(step, turn);
    if (step.kind == StepKind::beside) pending_.temporaries.push_back(big_temporary(directory, step.file, turn));
    if (set_aside_.count(directory) && !planted("apply_to_damaged")) return Status::ok();
    Result<std::string> wrong = what_is_wrong(step, turn);
    if (!wrong) return wrong.status();
    if (!wrong->empty()) return set_aside(directory, turn, *wrong, report);
    pending_.touched.insert(directory);
    return apply(step, turn);
}

Status Engine::replay(std::uint64_t turn, RecoveryReport &report) {
    if (lost_.count(turn)) return Status::ok();
    const std::string name = where_is(turn);
    Result<std::string> root = read_root(turn);
    if (!root) return about(name, root.status(), restore_it);
    Result<DecodedTurn> decoded = decode_turn(*root, turn, !planted("skip_root_checksum"));
    if (!decoded) return about(name, decoded.status(), restore_it);
    failpoint("store.recover_replay.before");
    for (const Step &step : decoded->steps)
        if (Status status = replay_step(step, turn, report); !status) return status;
    failpoint("store.recover_replay.after");
    if (options_.recovered) options_.recovered(turn, decoded->steps);
    ++report.turns_finished;
    return Status::ok();
}

Status Engine::replay_all(RecoveryReport &report) {
    Status status = resync_markers();
    const bool reverse = planted("reverse_replay");
    for (std::uint64_t i = applied_ + 1; status && i <= turn_; ++i)
        status = replay(reverse ? turn_ - (i - applied_ - 1) : i, report);
    return status ? report_markers(report) : status;
}

Status Engine::recover(RecoveryReport &report) {
    recovering_ = true;
    Result<std::vector<std::string>> present = disk_.list("");
    if (!present) return present.status();
    Status status;
    if (std::find(present->begin(), present->end(), format_file) == present->end()) {
        status = create_store(*present);
    } else {
        status = read_format_and_stamp(report);
        // After a kill without a power failure names may be visible that are not durable. The names
        // that recovery relies on below must not vanish afterwards.
        failpoint("store.recover_names.before");
        if (status && !planted("trust_visible_roots")) status = sync_dir("");
        if (status && !planted("trust_visible_roots")) status = sync_dir(turns_directory);
        failpoint("store.recover_names.after");
    }
    if (status) status = take_journal();
    std::vector<std::string> stale;
    std::set<std::string> temporaries;
    if (status) status = find_roots(stale, report);
    for (std::uint64_t turn = applied_ + 1; status && turn <= turn_; ++turn)
        status = check_root(turn, temporaries, report);
    if (!status) return status;

    // Changes begin only here, when every turn is known to exist.
    if (Result<std::uint64_t> size = disk_.size(reserve_file)) reserve_ = *size;
    status = keep_lost_roots();
    if (status) status = discard(stale, temporaries, report);
    if (status) status = repair_format_and_stamp();
    if (status) status = replay_all(report);
    if (status) status = flush_pending();
    if (status) drop_roots(dead_roots_.size());
    if (status) status = disk_.remove(journal_file);
    journal_turns_.clear();
    recovering_ = false;
    if (status) status = check_reserve();
    return status;
}

Result<std::unique_ptr<Store>> Store::open(Disk &disk, const Forest &forest, StoreOptions options,
                                           RecoveryReport *report) {
    if (Status status = check_forest(forest); !status) return status;
    DCS_REQUIRE(options.flush_turns > 0, "flush_turns is positive");
    auto engine = std::make_unique<Engine>(disk, forest, options);
    RecoveryReport ours;
    Status status = engine->recover(report ? *report : ours);
    if (!status) return status;
    return std::unique_ptr<Store>(std::move(engine));
}

}  // namespace dcs::store
