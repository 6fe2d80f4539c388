#include "store/copy.h"

#include "store/engine.h"
#include "store/names.h"

namespace dcs::store {
namespace {

// Without redundancy for single blocks: a frame on the wire has a checksum.
constexpr RootLayout on_the_wire{1, 0};
constexpr std::uint64_t piece_bytes = 1 << 20;

// A directory comes after all that is below it.
template <class OfFile, class OfDirectory>
Status each_in_tree(Disk &disk, const std::string &directory, OfFile of_file, OfDirectory of_directory, int depth = 0) {
    if (depth > deepest)
        return fail(Code::io_error, directory + " is nested too deeply for a backing store: move it away");
    Result<std::vector<std::string>> names = disk.list(directory);
    if (!names) return names.status();
    for (const std::string &name : *names) {
        const std::string path = join(directory, name), below = path.substr(0, path.size() - 1);
        const bool is_directory = name.back() == '/';
        Status status = is_directory ? each_in_tree(disk, below, of_file, of_directory, depth + 1) : of_file(path);
        if (!status) return status;
    }
    return of_directory(directory);
}

Status copy_file(Disk &from, Disk &to, const std::string &path) {
    Status s = to.create(path, "");
    for (std::uint64_t at = 0; s;) {
        const Result<std::string> piece = from.read(path, at, piece_bytes);
        if (!piece) return piece.status();
        if (piece->empty()) break;
        s = to.truncate_append(path, at, *piece);
        at += piece->size();
    }
    return s;
}

Status write_synced(Disk &disk, const std::string &path, const std::string &bytes) {
    Status status = disk.remove(path);
    if (status) status = disk.create(path, bytes);
    return status ? disk.sync_file(path) : status;
}

}  // namespace

Status copy_tree(Disk &from, Disk &to, const std::string &path, int depth) {
    if (depth > deepest) return fail(Code::io_error, path + " is nested too deeply for a backing store");
    if (const Result<bool> made = to.make_dir(path); !made) return made.status();
    const Result<std::vector<std::string>> names = from.list(path);
    if (!names) return names.status();
    for (const std::string &name : *names) {
        const std::string below = join(path, name);
        Status s;
        if (name.back() == '/') s = copy_tree(from, to, below.substr(0, below.size() - 1), depth + 1);
        else s = copy_file(from, to, below);
        if (!s) return s;
    }
    return Status::ok();
}

Status remove_tree(Disk &disk, const std::string &directory) {
    const Status s = each_in_tree(
        disk, directory, [&](const std::string &path) { return disk.remove(path); },
        [&](const std::string &path) { return disk.remove_dir(path); });
    return s.code == Code::not_found ? Status::ok() : s;
}

Status sync_everything(Disk &disk) {
    if (disk.sync_all_reports()) return disk.sync_all();
    return each_in_tree(
        disk, "", [&](const std::string &path) { return disk.sync_file(path); },
        [&](const std::string &path) { return disk.sync_dir(path); });
}

std::string encode_for_copy(std::uint64_t turn, const std::vector<Step> &steps) {
    std::vector<Step> whole = steps;
    for (Step &step : whole)
        if (step.kind == StepKind::beside || step.kind == StepKind::placed) step.kind = StepKind::inside;
    return encode_turn(turn, whole, on_the_wire);
}

Result<std::vector<Step>> steps_of_copy(std::uint64_t turn, std::string_view root) {
    Result<DecodedTurn> decoded = decode_turn(root, turn, true);
    if (!decoded) return fail(Code::invalid, "turn " + std::to_string(turn) + ": " + decoded.status().text);
    for (const Step &step : decoded->steps)
        if (step.damaged || step.kind == StepKind::beside || step.kind == StepKind::placed)
            return fail(Code::invalid, "turn " + std::to_string(turn) + " arrived incomplete");
    return std::move(decoded->steps);
}

bool valid_copied_path(std::string_view path) {
    if (!valid_tree_directory(path)) return false;
    const std::string_view name = path.substr(path.rfind('/') + 1);
    return path.find('/') != path.npos && !is_temporary(name);
}

Status found_copy(Disk &disk, std::uint64_t turn) {
    if (Result<bool> made = disk.make_dir(turns_directory); !made) return made.status();
    const RootLayout layout;
    Status status = disk.remove(applied_file);
    if (status) status = disk.create(applied_file, encode_stamp(turn, layout.block));
    if (status) status = sync_everything(disk);
    // The format file is last, because it marks the store as complete.
    if (status) status = write_synced(disk, format_temporary, encode_format(layout.block));
    if (status) status = disk.rename(format_temporary, format_file);
    return status ? disk.sync_dir("") : status;
}

CommitResult Engine::commit_copied(std::uint64_t turn, std::string_view root) {
    if (!may_commit()) return {Answer::unknown, broken_};
    if (turn <= turn_) return {Answer::done, Status::ok()};
    if (turn != turn_ + 1)
        return {Answer::nothing,
                fail(Code::invalid, "turn " + std::to_string(turn) + " does not follow turn " + std::to_string(turn_))};
    Result<std::vector<Step>> steps = steps_of_copy(turn, root);
    if (!steps) return {Answer::nothing, steps.status()};
    TurnPlan planned{.steps = std::move(*steps)};
    if (Status status = place(planned); !status) return {Answer::nothing, status};
    return commit_planned(planned, Room::ordinary);
}

}  // namespace dcs::store
