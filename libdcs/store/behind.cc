#include "store/behind.h"

#include <algorithm>

#include "base/failpoint.h"
#include "base/require.h"
#include "store/engine.h"
#include "store/names.h"

namespace dcs::store {

void Behind::add(const Step &step) {
    DCS_REQUIRE(step.kind == StepKind::inside, "what is applied later has its bytes in the root");
    File &file = files_[step.path()];
    bytes_ -= file.bytes.size();
    const bool continues = file.action == Action::append && step.action == Action::append && !file.name.empty() &&
                           step.old_length >= file.start;
    if (continues) {
        DCS_REQUIRE(step.old_length <= file.start + file.bytes.size(), "an append leaves no hole");
        file.bytes.resize(step.old_length - file.start);
        file.bytes.append(step.bytes);
    } else {
        file = File{std::string(step.directory), std::string(step.file), step.action, step.old_length,
                    std::string(step.bytes)};
    }
    bytes_ += file.bytes.size();
}

bool Behind::has_below(const std::string &directory) const {
    if (directory.empty()) return !files_.empty();
    const auto next = files_.lower_bound(directory + "/");
    return next != files_.end() && is_below(next->first, directory);
}

Result<std::string> Behind::read(Disk &disk, const std::string &path, std::uint64_t offset, std::uint64_t max) const {
    const auto found = files_.find(path);
    if (found == files_.end()) return disk.read(path, offset, max);
    const File &file = found->second;
    const std::uint64_t start = file.action == Action::append ? file.start : 0;
    std::string bytes;
    if (offset < start) {
        const std::uint64_t before = std::min(max, start - offset);
        Result<std::string> there = disk.read(path, offset, before);
        if (!there || there->size() < before) return there;
        bytes = std::move(*there);
    }
    const std::uint64_t at = offset + bytes.size() - start;
    if (bytes.size() < max && at < file.bytes.size()) bytes.append(file.bytes, at, max - bytes.size());
    return bytes;
}

// Only as far as the reserve can complete it, should other programs take all free space.
bool Engine::may_lag(const TurnPlan &plan) const {
    if (options_.behind_turns == 0 || reserve_ != options_.reserve_bytes) return false;
    const std::uint64_t own = plan.all_bytes + options_.step_room * plan.steps.size();
    if (own + behind_.room(options_.step_room) > reserve_ / 2) return false;
    return std::all_of(plan.steps.begin(), plan.steps.end(), [](const Step &step) {
        return step.kind == StepKind::inside || step.kind == StepKind::noted;
    });
}

bool Engine::lags_too_far() const {
    return behind_.turns() >= options_.behind_turns || behind_.bytes() > options_.behind_bytes;
}

void Engine::put_behind(const TurnPlan &plan) {
    for (const Step &step : plan.steps) {
        if (step.kind == StepKind::noted) continue;
        behind_.add(step);
        if (step.action == Action::append) pending_.lengths[step.path()] = step.old_length + step.length;
    }
    behind_.count_turn();
}

// A failure leaves a committed turn without its effects, so the process ends and recovery repeats it.
Status Engine::catch_up() {
    if (behind_.turns() == 0) return Status::ok();
    failpoint("store.catch_up.before");
    for (const auto &[path, file] : behind_.files()) {
        Step step;
        step.directory = file.directory;
        step.file = file.name;
        step.action = file.action;
        step.old_length = file.action == Action::append ? file.start : 0;
        step.length = file.bytes.size();
        step.bytes = file.bytes;
        Status status = apply(step, turn_);
        if (status) continue;
        doubt_ = true;
        return status;
    }
    behind_ = Behind();
    failpoint("store.catch_up.after");
    return Status::ok();
}

}  // namespace dcs::store
