// open(): finishes what was committed, discards what was not.
#include <algorithm>

#include "base/checksum.h"
#include "store/engine.h"
#include "store/names.h"
#include "store/stamp.h"

namespace dcs::store {
namespace {

constexpr std::uint64_t chunk_bytes = 1u << 20;
constexpr int deepest = 64;

Status about(const std::string &file, const Status &status, const char *advice) {
    return fail(status.code, file + ": " + status.text + advice);
}

constexpr const char *restore_it =
    "; it belongs to a committed turn and was left untouched: restore it (or the whole state "
    "directory) from a backup";

}  // namespace

Result<std::string> Engine::read_whole(const std::string &path) {
    Result<std::uint64_t> size = disk_.size(path);
    if (!size) return size.status();
    Result<std::string> bytes = disk_.read(path, 0, *size);
    if (bytes && bytes->size() != *size)
        return fail(Code::io_error, "it became shorter while it was read");
    return bytes;
}

// The format file comes last, so that it vouches for the rest.
Status Engine::create_store(const std::vector<std::string> &present) {
    for (const std::string &name : present)
        if (name != lock_file && name != "turns/" && name != "lost+found/" &&
            name != format_temporary && name != reserve_file && name != reserve_temporary)
            return fail(Code::invalid, "the directory has no format file but holds `" + name +
                                           "`: it is no backing store, give an empty directory");
    if (Result<bool> made = disk_.make_dir(turns_directory); !made) return made.status();
    Result<std::vector<std::string>> turns = disk_.list(turns_directory);
    if (!turns) return turns.status();
    for (const std::string &name : *turns)
        if (name != "applied" && name != "applied.tmp")
            return fail(Code::invalid, "the directory has no format file but holds `turns/" + name +
                                           "`: restore it from a backup");
    Status status = write_stamp(0);
    if (status) status = sync_dir("");
    if (status) status = disk_.remove(format_temporary);
    if (status) status = disk_.create(format_temporary, format_text);
    if (status) status = sync_file(format_temporary);
    if (status) status = disk_.rename(format_temporary, format_file);
    if (status) status = sync_dir("");
    return status;
}

Status Engine::check_format() {
    Result<std::string> text = disk_.read(format_file, 0, 256);
    if (!text) return text.status();
    if (*text == format_text) return Status::ok();
    return fail(Code::invalid, "the format file says `" + text->substr(0, text->find('\n')) +
                                   "`, this program reads `dcs backing store 1`: use the version "
                                   "of DCS that wrote it");
}

Status Engine::read_stamp() {
    Result<std::string> text = disk_.read(applied_file, 0, 256);
    if (!text) return about(applied_file, text.status(), restore_it);
    Result<std::uint64_t> stamp = decode_stamp(*text);
    if (!stamp) return about(applied_file, stamp.status(), restore_it);
    applied_ = turn_ = *stamp;
    return Status::ok();
}

// The committed turns above the stamp, without a gap; everything else in turns/ is stale.
Status Engine::find_roots(std::vector<std::string> &stale, RecoveryReport &report) {
    Result<std::vector<std::string>> names = disk_.list(turns_directory);
    if (!names) return names.status();
    for (const std::string &name : *names) {
        std::uint64_t number = 0;
        const bool root = parse_root_name(name, number);
        if (root && number > applied_) {
            if (number != turn_ + 1)
                return fail(Code::io_error, root_name(turn_ + 1) + " is missing though " + name +
                                                " is there" + restore_it);
            turn_ = number;
        } else if (root || is_temporary(name)) {
            stale.push_back(join(turns_directory, name));
            if (!root) ++report.temporaries_discarded;
        }
    }
    return Status::ok();
}

Status Engine::verify_big(const Step &step, std::uint64_t turn) {
    const std::string name = big_temporary(step.directory, step.file, turn);
    Result<std::uint64_t> size = disk_.size(name);
    if (!size) return about(name, size.status(), restore_it);
    Result<std::string> bytes = disk_.read(name, 0, step.length);
    if (!bytes) return about(name, bytes.status(), restore_it);
    if (planted(plant_skip_root_checksum)) return Status::ok();
    if (*size != step.length || crc32c(*bytes) != step.checksum)
        return fail(Code::io_error, name + ": its length or checksum is wrong" + restore_it);
    return Status::ok();
}

Status Engine::verify_root(std::uint64_t turn, std::set<std::string> &temporaries) {
    Result<std::string> root = read_whole(root_name(turn));
    if (!root) return about(root_name(turn), root.status(), restore_it);
    Result<std::vector<Step>> steps = decode_turn(*root, turn, !planted(plant_skip_root_checksum));
    if (!steps) return about(root_name(turn), steps.status(), restore_it);
    pending_.bytes += root->size();
    for (const Step &step : *steps) {
        if (step.kind != StepKind::beside) continue;
        temporaries.insert(big_temporary(step.directory, step.file, turn));
        if (planted(plant_move_big)) continue;
        if (Status status = verify_big(step, turn); !status) return status;
    }
    return Status::ok();
}

// Temporaries of turns that were never committed, and directories that nothing lives in.
Status Engine::discard_strays(const std::string &directory, const std::set<std::string> &keep,
                              int depth, RecoveryReport &report) {
    if (depth > deepest) return fail(Code::io_error, directory + " is too deep to be one of ours");
    Result<std::vector<std::string>> names = disk_.list(directory);
    if (!names) return names.status();
    for (const std::string &name : *names) {
        const bool is_directory = name.back() == '/';
        const std::string path =
            join(directory, is_directory ? name.substr(0, name.size() - 1) : name);
        if (depth == 0 && !valid_tree_directory(path) && !is_temporary(path)) continue;
        if (is_directory) {
            if (path == "lost+found") continue;
            Status status = discard_strays(path, keep, depth + 1, report);
            if (!status) return status;
            status = disk_.remove_dir(path);
            if (!status && status.code != Code::refused) return status;
        } else if (is_temporary(name) && !keep.count(path)) {
            if (Status status = disk_.remove(path); !status) return status;
            ++report.temporaries_discarded;
        }
    }
    return Status::ok();
}

// One damaged file must not keep everything else down (B6): it is moved away and named.
Status Engine::set_aside(const std::string &path, std::uint64_t turn, RecoveryReport &report) {
    std::string name = path;
    std::replace(name.begin(), name.end(), '/', ',');
    name = std::to_string(turn) + "," + name;
    if (name.size() > 255) name.resize(255);
    if (Result<bool> made = disk_.make_dir(damaged_directory); !made) return made.status();
    Status status = disk_.rename(path, join(damaged_directory, name));
    if (!status && status.code != Code::not_found) return status;
    report.damaged.push_back(path);
    pending_.files.erase(path);
    pending_.lengths.erase(path);
    pending_.directories.insert(parent_of(path));
    pending_.directories.insert(damaged_directory);
    pending_.directories.insert("");
    return Status::ok();
}

Status Engine::replay(std::uint64_t turn, RecoveryReport &report) {
    Result<std::string> root = read_whole(root_name(turn));
    if (!root) return about(root_name(turn), root.status(), restore_it);
    Result<std::vector<Step>> steps = decode_turn(*root, turn, !planted(plant_skip_root_checksum));
    if (!steps) return about(root_name(turn), steps.status(), restore_it);
    for (Step &step : *steps) {
        const bool append = step.kind != StepKind::noted && step.kind != StepKind::remove &&
                            step.action == Action::append;
        const auto &damaged = report.damaged;
        if (append) {
            if (std::find(damaged.begin(), damaged.end(), step.path()) != damaged.end()) continue;
            Result<std::uint64_t> size = disk_.size(step.path());
            if (!size && size.status().code != Code::not_found) return size.status();
            if ((size ? *size : 0) < step.old_length) {
                if (Status s = set_aside(step.path(), turn, report); !s) return s;
                continue;
            }
        }
        if (Status status = apply(step, turn); !status) return status;
        if (step.kind == StepKind::remove) continue;
        if (step.kind == StepKind::beside)
            pending_.temporaries.push_back(big_temporary(step.directory, step.file, turn));
        pending_.touched.insert(step.directory);
    }
    ++report.turns_finished;
    return Status::ok();
}

// A reserve that a crash cut short, or that another setting made, is made anew. On a full disk it
// waits for the next commit that finds room.
void Engine::check_reserve() {
    Result<std::uint64_t> size = disk_.size(reserve_file);
    if (size && *size == options_.reserve_bytes) {
        reserve_ = true;
        return;
    }
    if (disk_.remove(reserve_file)) (void)make_reserve();
}

Status Engine::recover(RecoveryReport &report) {
    recovering_ = true;
    Result<std::vector<std::string>> present = disk_.list("");
    if (!present) return present.status();
    Status status;
    if (std::find(present->begin(), present->end(), format_file) == present->end()) {
        status = create_store(*present);
    } else {
        status = check_format();
        // After a kill (no power failure) names may be visible that are not durable. What is acted
        // upon below must not vanish afterwards.
        if (status && !planted(plant_trust_visible_roots)) status = sync_dir("");
        if (status && !planted(plant_trust_visible_roots)) status = sync_dir(turns_directory);
    }
    std::vector<std::string> stale;
    std::set<std::string> temporaries;
    if (status) status = read_stamp();
    if (status) status = find_roots(stale, report);
    for (std::uint64_t turn = applied_ + 1; status && turn <= turn_; ++turn)
        status = verify_root(turn, temporaries);
    if (!status) return status;

    // Only now, when everything that is needed is known to be there, is anything changed.
    reserve_ = bool(disk_.size(reserve_file));
    for (const std::string &path : stale)
        if (status) status = disk_.remove(path);
    if (status && !planted(plant_keep_strays)) status = discard_strays("", temporaries, 0, report);
    if (!planted(plant_reverse_replay)) {
        for (std::uint64_t turn = applied_ + 1; status && turn <= turn_; ++turn)
            status = replay(turn, report);
    } else {
        for (std::uint64_t turn = turn_; status && turn > applied_; --turn)
            status = replay(turn, report);
    }
    if (status) status = flush_pending();
    recovering_ = false;
    if (status) check_reserve();
    return status;
}

Result<std::unique_ptr<Store>> Store::open(Disk &disk, const Forest &forest, StoreOptions options,
                                           RecoveryReport *report) {
    if (Status status = check_forest(forest); !status) return status;
    DCS_REQUIRE(options.flush_turns > 0, "the store must flush some time");
    auto engine = std::make_unique<Engine>(disk, forest, options);
    RecoveryReport ours;
    Status status = engine->recover(report ? *report : ours);
    if (!status) return status;
    return std::unique_ptr<Store>(std::move(engine));
}

}  // namespace dcs::store
