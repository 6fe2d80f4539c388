// The grains that wait for a slot. The launcher starts the next one in the slot of a grain that has ended, and reports
// the end to the server afterwards, so no slot waits for a round trip. Its kernel lock is held throughout.
#include <algorithm>

#include "base/clock.h"
#include "base/failpoint.h"
#include "base/planted.h"
#include "base/require.h"
#include "grainserver/launcher/launcher.h"

namespace dcs::launcher {
namespace {
using files::Verb;

constexpr Duration slot_retry = milliseconds(200);  // other servers of this host may have freed a slot

files::LauncherCall refused_by_stop(const std::string &dir) {
    files::LauncherCall answer{Verb::failed, dir, static_cast<int>(Code::refused)};
    answer.text = "the launcher of this host is being stopped";
    return answer;
}

files::LauncherCall answer_to(const std::string &dir, const StartOutcome &outcome) {
    files::LauncherCall answer{.dir = dir};
    switch (outcome.kind) {
    case StartOutcome::Kind::have_it: answer.verb = Verb::have; break;
    case StartOutcome::Kind::started: answer.verb = Verb::started; break;
    case StartOutcome::Kind::failed:
        answer.verb = Verb::failed;
        answer.number = static_cast<int>(outcome.code);
        answer.again = outcome.again;
        answer.text = outcome.text;
        break;
    }
    return answer;
}
}  // namespace

// Started: the slot is the grain's.
StartOutcome Launcher::try_start(const std::string &dir, int limit, HeldSlot &held) {
    std::vector<const Indices *> taken;
    for (const auto &[name, grain] : grains_)
        if (!grain.indices.empty()) taken.push_back(&grain.indices);
    StartOutcome outcome = start_grain(place_, dir, limit, held, taken);
    if (outcome.kind == StartOutcome::Kind::started) {
        DCS_REQUIRE(outcome.pid > 1 && held.slot.held(), "a grain that was started has a process and a slot");
        Running &grain = grains_[dir];
        grain.pid = outcome.pid;
        grain.slot = std::move(held.slot);
        grain.low_priority = outcome.low_priority;
        grain.limits = outcome.limits;
        grain.account = outcome.account;
        grain.indices = std::move(outcome.indices);
        grain.in_group = outcome.leaf.there;
        grain.leaf = std::move(outcome.leaf);
        next_watch_ = std::min(next_watch_, boot_clock() + look_often);
    }
    failpoint("launcher.start.before_answer");
    return outcome;
}

void Launcher::start(int peer, const files::LauncherCall &call) {
    if (stopping_ || ended_) return send_to(peer, refused_by_stop(call.dir));
    keep_keeper();
    HeldSlot none;
    send_to(peer, answer_to(call.dir, try_start(call.dir, call.number, none)));
    release(std::move(none));
}

void Launcher::queue(int peer, const files::LauncherCall &call) {
    answers_[peer];  // this server reads several answers in one packet
    if (stopping_) return send_to(peer, refused_by_stop(call.dir));
    if (ended_ && !planted("launcher.starts_at_its_end")) return;  // the server gives it to the next launcher
    slot_limit_ = call.number;
    if (grains_.count(call.dir) != 0) return send_to(peer, {Verb::have, call.dir});
    const auto waits = [&](const Queued &queued) { return queued.dir == call.dir; };
    if (std::any_of(queue_.begin(), queue_.end(), waits)) return;
    if (call.verb == Verb::first) queue_.push_front({call.dir, peer});
    else queue_.push_back({call.dir, peer});
}

void Launcher::recall(int peer, const std::string &dir) {
    answers_[peer];
    const auto waits = [&](const Queued &queued) { return queued.dir == dir; };
    if (planted("launcher.recall_forgets") || std::erase_if(queue_, waits) != 0)
        return send_to(peer, {Verb::recalled, dir});
    send_to(peer, {was_started(place_, dir) ? Verb::have : Verb::recalled, dir});
}

bool Launcher::may_start_queued() const {
    return !queue_.empty() && !stopping_ && grains_.size() < static_cast<std::size_t>(std::max(slot_limit_, 0));
}

// The first in the queue that can start. What waits for indices of a resource keeps its place; false: none can.
bool Launcher::start_next(HeldSlot &held) {
    for (auto next = queue_.begin(); next != queue_.end(); ++next) {
        const StartOutcome outcome = try_start(next->dir, slot_limit_, held);
        if (outcome.lacks_indices) continue;
        if (outcome.again) return false;
        const Queued answered = *next;
        queue_.erase(next);
        send_to(answered.peer, answer_to(answered.dir, outcome));
        return true;
    }
    return false;
}

// The slot of a grain that has ended goes to the next one, or is free.
void Launcher::hand_on(HeldSlot held) {
    while (may_start_queued() && held.slot.held() && start_next(held)) {}
    release(std::move(held));
}

void Launcher::release(HeldSlot held) {
    if (!held.slot.held() || starter_.lost()) return;  // a grain may have been started with it
    held.slot.release();                               // also for the keeper's copy
    if (!keeper_.drop(held.kept_as)) keep_keeper();
}

// The queue gets slots of its own.
void Launcher::start_queue(Instant now) {
    if (!may_start_queued() || now < next_queue_try_) return;
    keep_keeper();
    while (may_start_queued()) {
        HeldSlot held;
        const bool started = start_next(held);
        release(std::move(held));
        if (started) continue;
        next_queue_try_ = now + slot_retry;
        return;
    }
}

void Launcher::refuse_queue() {
    for (const Queued &waits : queue_) send_to(waits.peer, refused_by_stop(waits.dir));
    queue_.clear();
}

}  // namespace dcs::launcher
