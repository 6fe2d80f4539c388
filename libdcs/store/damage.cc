// How open() handles damage: small texts are repaired from their copies, a tree with lost bytes is set aside by a
// marker in its directory, and the rest continues to work.
#include "base/bytes.h"
#include "base/failpoint.h"
#include "store/engine.h"
#include "store/names.h"

namespace dcs::store {
namespace {

constexpr std::uint64_t most_text = 64 * 1024;  // a stamp, a format, a marker

}  // namespace

// Decides whether this is a DCS store, before any change. An unreadable format file is accepted if the stamp is valid.
Status Engine::read_format_and_stamp(RecoveryReport &report) {
    Result<std::string> format = disk_.read(format_file, 0, most_text);
    if (!format) return format.status();
    const Format kind = decode_format(*format);
    if (kind == Format::foreign)
        return fail(Code::invalid, "the format file contains `" + format_line(*format) +
                                       "`, but this program reads `dcs backing store 3`: use the version "
                                       "of DCS that wrote it");
    Result<std::string> text = disk_.read(applied_file, 0, most_text);
    if (!text && text.status().code != Code::not_found) return text.status();
    const bool check_sums = !planted("skip_stamp_checksum");
    Result<Stamp> stamp = text ? decode_stamp(*text, check_sums) : Result<Stamp>(text.status());
    if (kind == Format::damaged && !stamp)
        return fail(Code::io_error,
                    "neither the file format nor turns/applied can be read: restore the state directory from a backup");
    rewrite_format_ = kind != Format::good;
    if (rewrite_format_ && kind != Format::older)
        report.damaged.push_back({format_file, kind == Format::damaged ? "both of its copies were damaged; rewritten"
                                                                       : "one of its copies was damaged; rewritten"});
    if (!stamp) {
        stamp_lost_ = rewrite_stamp_ = true;
        report.damaged.push_back({applied_file, stamp.status().text + "; no turn is pending, so it is rewritten"});
        return Status::ok();
    }
    if (!stamp->damage.empty()) {
        rewrite_stamp_ = true;
        report.damaged.push_back({applied_file, stamp->damage + "; the other one is valid, so it is rewritten"});
    }
    applied_ = turn_ = stamp->turn;
    return Status::ok();
}

// Without the stamp it is not known which roots are applied, and applying one twice is as wrong as leaving one out.
// Without roots the stamp is not needed.
Status Engine::check_stamp_missing(const std::vector<std::string> &names) const {
    std::uint64_t turn = 0;
    for (const std::string &name : names)
        if (parse_root_name(name, turn))
            return fail(Code::io_error, std::string(applied_file) + " cannot be read while turns/" + name +
                                            " exists: nothing was changed, restore the state directory from a backup");
    return Status::ok();
}

// New turn numbers are higher than any number in the directory's names.
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

// Empty: no damage. An I/O error of the disk is an error of open, not damage: the next start may succeed.
Result<std::string> Engine::what_is_wrong(const Step &step, std::uint64_t turn) {
    if (step.damaged) return "the bytes of " + std::string(step.file) + " in " + root_name(turn) + " are damaged";
    if (step.kind == StepKind::beside && !planted("move_big")) {
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
        if (!fits && !planted("skip_root_checksum")) return name + " is damaged";
    }
    if (step.action != Action::append) return std::string();
    Result<std::uint64_t> length = disk_.size(step.path());
    if (!length && length.status().code != Code::not_found) return length.status();
    const std::uint64_t there = length ? *length : 0;
    if (there >= step.old_length) return std::string();
    return step.path() + " has " + std::to_string(there) + " bytes, but " + std::to_string(step.old_length) +
           " were recorded";
}

// The marker is synced with everything else before the roots are removed: after a crash before that, recovery finds the
// damage again.
Status Engine::set_aside(const std::string &directory, std::uint64_t turn, const std::string &what,
                         RecoveryReport &report) {
    const std::string marker = marker_of(directory);
    const std::string text = "This tree is set aside: in turn " + std::to_string(turn) + " " + what +
                             ". Later commits to it are missing, from that turn on. Remove the tree, or restore "
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
    if (!planted("no_sync_marker")) {
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
        status = disk_.create(
            marker, "This tree is set aside: " + why + ". To use it again, stop the scheduler and remove this file.\n");
    if (status) status = sync_file(marker);
    if (status) status = sync_dir(directory);
    if (doubt_) broken_ = status;
    if (status) set_aside_.insert(directory);
    return status;
}

// A marker of an interrupted recovery may be visible but not durable. Replay skips
// these trees, so it would not find the damage again.
Status Engine::resync_markers() {
    if (turn_ == applied_ || planted("trust_visible_marker")) return Status::ok();
    for (const std::string &directory : set_aside_) {
        if (Status status = make_directories(directory, nullptr); !status) return status;
        pending_.files.insert(marker_of(directory));
        pending_.directories.insert(directory);
    }
    return Status::ok();
}

// Reports the markers of earlier starts that no replayed removal has removed.
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

// Keeps them under another name, so that the next start after a crash accepts the loss too.
Status Engine::keep_lost_roots() {
    for (const std::uint64_t turn : lost_) {
        Result<std::uint64_t> there = disk_.size(root_name(turn));
        const bool in_journal = journal_turns_.count(turn) != 0;
        if (!there && there.status().code == Code::not_found && !in_journal) continue;
        if (!there && !in_journal) return there.status();
        failpoint("store.lost_root.before");
        Status status = in_journal ? disk_.remove(lost_name(turn)) : disk_.rename(root_name(turn), lost_name(turn));
        if (status && in_journal) status = disk_.create(lost_name(turn), "given up: the journal is damaged\n");
        if (!status) return status;
        failpoint("store.lost_root.after");
    }
    return Status::ok();
}

}  // namespace dcs::store
