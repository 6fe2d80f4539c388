// What open() does about damage: small texts are repaired from their copies, a tree whose bytes are
// lost is set aside by a marker in its directory, and everything else runs on.
#include "base/checksum.h"
#include "base/failpoint.h"
#include "store/engine.h"
#include "store/names.h"

namespace dcs::store {
namespace {

constexpr std::uint64_t most_text = 64 * 1024;  // a stamp, a format, a marker

}  // namespace

// Decides before anything is touched whether this is our store. A format file that says nothing is
// believed to be ours if the stamp is.
Status Engine::read_format_and_stamp(RecoveryReport &report) {
    Result<std::string> format = disk_.read(format_file, 0, most_text);
    if (!format) return format.status();
    const Format kind = decode_format(*format);
    if (kind == Format::foreign)
        return fail(Code::invalid, "the format file says `" + format_line(*format) +
                                       "`, this program reads `dcs backing store 2`: use the version "
                                       "of DCS that wrote it");
    Result<std::string> text = disk_.read(applied_file, 0, most_text);
    if (!text && text.status().code != Code::not_found) return text.status();
    const bool check_sums = !planted(plant_skip_stamp_checksum);
    Result<Stamp> stamp = text ? decode_stamp(*text, check_sums) : Result<Stamp>(text.status());
    if (kind == Format::damaged && !stamp)
        return fail(Code::io_error, "neither the file format nor turns/applied can be read: restore the state "
                                    "directory from a backup");
    if (kind != Format::good) {
        rewrite_format_ = true;
        report.damaged.push_back({format_file, kind == Format::damaged ? "both of its copies were damaged; written anew"
                                                                      : "one of its copies was damaged; written anew"});
    }
    if (!stamp) {
        stamp_lost_ = rewrite_stamp_ = true;
        report.damaged.push_back({applied_file, stamp.status().text + "; no turn waits, so it is written anew"});
        return Status::ok();
    }
    if (!stamp->damage.empty()) {
        rewrite_stamp_ = true;
        report.damaged.push_back({applied_file, stamp->damage + "; the other one is good, it is written anew"});
    }
    applied_ = turn_ = stamp->turn;
    return Status::ok();
}

// Without the stamp it is not known which roots are applied: applying one that was is as wrong as
// leaving one out. Without roots there is nothing to know.
Status Engine::check_stamp_missing(const std::vector<std::string> &names) const {
    std::uint64_t turn = 0;
    for (const std::string &name : names)
        if (parse_root_name(name, turn))
            return fail(Code::io_error, std::string(applied_file) + " cannot be read while turns/" + name +
                                            " is there: nothing was touched, restore the state directory from a "
                                            "backup");
    return Status::ok();
}

// The numbers that follow are higher than any that a name in the directory bears.
Status Engine::repair_format_and_stamp() {
    failpoint("store.repair.before");
    Status status;
    if (rewrite_format_) status = replace_file(format_temporary, format_file, encode_format(layout().block));
    if (status && rewrite_format_) status = sync_dir("");
    if (stamp_lost_) applied_ = turn_ = highest_;
    if (status && rewrite_stamp_ && applied_ == turn_) status = write_stamp(turn_);
    failpoint("store.repair.after");
    return status;
}

// Empty: nothing. A failing disk is an error of open, not damage: it may work the next time.
Result<std::string> Engine::what_is_wrong(const Step &step, std::uint64_t turn) {
    if (step.damaged)
        return "the bytes of " + std::string(step.file) + " in " + root_name(turn) + " are damaged";
    if (step.kind == StepKind::beside && !planted(plant_move_big)) {
        const std::string name = big_temporary(step.directory, step.file, turn);
        Result<std::uint64_t> size = disk_.size(name);
        if (!size && size.status().code != Code::not_found) return size.status();
        if (!size) return name + " is missing";
        std::uint32_t sum = 0;
        for (std::uint64_t at = 0; at < *size; at += chunk_bytes) {
            Result<std::string> chunk = disk_.read(name, at, chunk_bytes);
            if (!chunk) return chunk.status();
            sum = crc32c(*chunk, sum);
        }
        const bool fits = *size == step.length && sum == step.checksum;
        if (!fits && !planted(plant_skip_root_checksum)) return name + " is damaged";
    }
    if (step.action != Action::append) return std::string();
    Result<std::uint64_t> length = disk_.size(step.path());
    if (!length && length.status().code != Code::not_found) return length.status();
    const std::uint64_t there = length ? *length : 0;
    if (there >= step.old_length) return std::string();
    return step.path() + " has " + std::to_string(there) + " bytes where " + std::to_string(step.old_length) +
           " were recorded";
}

// The marker is synced with everything else before the roots go away: a crash until then finds the
// damage again.
Status Engine::set_aside(const std::string &directory, std::uint64_t turn, const std::string &what,
                         RecoveryReport &report) {
    const std::string marker = marker_of(directory);
    const std::string text = "This tree is set aside: in turn " + std::to_string(turn) + " " + what +
                             ". What was committed to it from that turn on is missing. Remove the tree, or restore "
                             "the state directory from a backup.\n";
    failpoint("store.marker.before");
    Status status = make_directories(directory, nullptr);
    if (status)
        status = with_reserve(options_.step_room, [&] {
            Status removed = disk_.remove(marker);
            return removed ? disk_.create(marker, text) : removed;
        });
    if (!status) return status;
    failpoint("store.marker.after");
    if (!planted(plant_no_sync_marker)) {
        pending_.files.insert(marker);
        pending_.directories.insert(directory);
    }
    set_aside_.insert(directory);
    report.damaged.push_back({directory, "in turn " + std::to_string(turn) + " " + what});
    return status;
}

Status Engine::set_aside(const std::string &directory, const std::string &why) {
    if (!broken_) return broken_;
    const std::string marker = marker_of(directory);
    Status status = disk_.remove(marker);
    if (status)
        status = disk_.create(marker, "This tree is set aside: " + why +
                                          ". To use it again, stop the scheduler and remove this file.\n");
    if (status) status = sync_file(marker);
    if (status) status = sync_dir(directory);
    if (doubt_) broken_ = status;
    if (status) set_aside_.insert(directory);
    return status;
}

// Of the recovery before this one, perhaps: visible after a kill, and not durable. Replay leaves
// these trees alone, so it would not find the damage again.
Status Engine::resync_markers() {
    if (turn_ == applied_ || planted(plant_trust_visible_marker)) return Status::ok();
    for (const std::string &directory : set_aside_) {
        if (Status status = make_directories(directory, nullptr); !status) return status;
        pending_.files.insert(marker_of(directory));
        pending_.directories.insert(directory);
    }
    return Status::ok();
}

// Those of earlier starts that no replayed removal took away.
Status Engine::report_markers(RecoveryReport &report) {
    std::set<std::string_view> known;
    const std::vector<Damage> now = report.damaged;
    for (const Damage &damage : now) known.insert(damage.path);
    for (const std::string &directory : set_aside_) {
        if (known.count(directory)) continue;
        Result<std::string> text = disk_.read(marker_of(directory), 0, most_text);
        if (!text) return text.status();
        report.damaged.push_back({directory, "set aside by an earlier start: " + text->substr(0, text->find('\n'))});
    }
    return Status::ok();
}

// Kept under another name, so that the start after a crash goes on behind it, too.
Status Engine::keep_lost_roots() {
    for (const std::uint64_t turn : lost_) {
        Result<std::uint64_t> there = disk_.size(root_name(turn));
        if (!there && there.status().code == Code::not_found) continue;
        if (!there) return there.status();
        failpoint("store.lost_root.before");
        if (Status status = disk_.rename(root_name(turn), lost_name(turn)); !status) return status;
        failpoint("store.lost_root.after");
    }
    return Status::ok();
}

}  // namespace dcs::store
