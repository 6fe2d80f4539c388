// The turns that files do not show yet: which may wait, and applying them in groups.
#include "store/engine.h"

#include <algorithm>

#include "base/failpoint.h"

namespace dcs::store {

// Only as far as the reserve can complete it, should other programs take all free space.
bool Engine::may_lag(const TurnPlan &plan) const {
    if (options_.behind_turns == 0 || reserve_ != options_.reserve_bytes) return false;
    const std::uint64_t own = plan.all_bytes - plan.placed_bytes + options_.step_room * plan.steps.size();
    if (own + behind_.room(options_.step_room) > reserve_ / 2) return false;
    return std::all_of(plan.steps.begin(), plan.steps.end(),
                       [](const Step &step) { return step.kind != StepKind::beside && step.kind != StepKind::remove; });
}

bool Engine::lags_too_far() const {
    return behind_.turns() >= options_.behind_turns || behind_.bytes() > options_.behind_bytes;
}

void Engine::put_behind(const TurnPlan &plan) {
    for (const Step &step : plan.steps) {
        if (step.kind == StepKind::noted || step.kind == StepKind::placed) continue;
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
