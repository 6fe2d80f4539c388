#include "store/copy.h"

#include "store/engine.h"
#include "store/names.h"

namespace dcs::store {
namespace {

// Without redundancy for single blocks: a frame on the wire has a checksum.
constexpr RootLayout on_the_wire{1, 0};

Status sync_tree(Disk &disk, const std::string &directory, int depth) {
    if (depth > deepest)
        return fail(Code::io_error, directory + " is nested too deeply for a backing store: move it away");
    Result<std::vector<std::string>> names = disk.list(directory);
    if (!names) return names.status();
    for (const std::string &name : *names) {
        const std::string path = join(directory, name);
        Status status =
            name.back() == '/' ? sync_tree(disk, path.substr(0, path.size() - 1), depth + 1) : disk.sync_file(path);
        if (!status) return status;
    }
    return disk.sync_dir(directory);
}

Status write_synced(Disk &disk, const std::string &path, const std::string &bytes) {
    Status status = disk.remove(path);
    if (status) status = disk.create(path, bytes);
    return status ? disk.sync_file(path) : status;
}

}  // namespace

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
    if (status) status = disk.sync_all_reports() ? disk.sync_all() : sync_tree(disk, "", 0);
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
