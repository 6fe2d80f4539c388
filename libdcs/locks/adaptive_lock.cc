#include "locks/adaptive_lock.h"

#include <memory>
#include <unistd.h>
#include <utility>

#include "base/failpoint.h"
#include "base/require.h"
#include "locks/adaptive_get.h"
#include "locks/files/lock_search.h"
#include "locks/run_end.h"

namespace dcs::locks {

AdaptiveLock &AdaptiveLock::operator=(AdaptiveLock &&other) noexcept {
    if (this == &other) return *this;
    if (held()) release({});
    std::destroy_at(this);
    return *std::construct_at(this, std::move(other));
}

// A forked child has a copy of this object and records nothing.
AdaptiveLock::~AdaptiveLock() {
    if (!held()) return;
    if (taker_ == ::getpid()) release({});
    else abandon();
}

Answer AdaptiveLock::get(const World &world, const LockRequest &request, AdaptiveLock &lock) {
    const auto wrong = [](std::int64_t limit) { return limit < 0 && limit != automatic; };
    Answer answer;
    if (wrong(request.if_elapsed) || wrong(request.expire_after))
        answer.status = fail(Code::invalid, "ifelapsed and expireafter of a lock cannot be negative");
    else if (request.expire_after == 0 && !request.literal)
        answer.status =
            fail(Code::invalid, "expireafter 0 would end every holder at once and lock nothing: give a time, or never");
    if (!answer.status) {
        answer.text = answer.status.text;
        return answer;
    }
    Getting getting(world, request);
    answer = getting.run();
    if (answer.denied != Denied::no) return answer;
    DCS_REQUIRE(getting.file.is_open(), "a granted lock is held");
    AdaptiveLock granted;
    granted.world_ = &world;
    granted.file_ = std::move(getting.file);
    granted.place_ = request.place;
    const bool recorded = !request.shared && getting.record.outcome == Outcome::running;
    granted.taker_ = recorded ? getting.record.owner.process.pid : own_identity().pid;  // saves a system call
    granted.record_ = std::move(getting.record);
    granted.soft_ = getting.soft;
    granted.hard_ = getting.hard;
    granted.waited_ = getting.waited;
    granted.shared_ = request.shared;
    granted.log_ = request.log;
    lock = std::move(granted);
    return answer;
}

void AdaptiveLock::set_owner(const Owner &owner) {
    record_.owner = owner;
    taker_ = ::getpid();
    // If the record cannot be written, the previous one stays, with an owner that does not run. Expiry then finds
    // no process to end and reports that. The kernel lock is unaffected.
    if (held() && !shared_ && file_.keeps_records()) (void)write_record(file_, record_);
}

void AdaptiveLock::adopt() {
    if (!held()) return;
    Owner self = own_owner(*world_);
    self.cookie = record_.owner.cookie;
    set_owner(self);
}

void AdaptiveLock::release(const End &end) {
    if (!held()) return;
    DCS_REQUIRE(world_ != nullptr, "a held lock was granted");
    if (!shared_ && file_.keeps_records()) {
        const bool said = end.ended.wall != 0 || end.ended.mono != 0 || end.ended.boot != 0;
        RunEnding ending{end.outcome, said ? end.ended : world_->now(), end.cpu, end.io, waited_, end.progressing, ""};
        end_run(*world_, file_, place_, log_, record_, ending);
        failpoint("locks.release.before_record");
        // On failure the next holder finds the run unfinished and records it as crashed.
        (void)write_record(file_, record_);
        failpoint("locks.release.after_record");
    }
    if (!end.inherited) file_.let_go();
    file_ = LockFile();
}

void AdaptiveLock::abandon() { file_ = LockFile(); }

Result<AtomState> look_at(const World &, const Place &place) {
    AtomState state;
    Result<LockFile> file = LockFile::look(place);
    if (!file) {
        if (file.status().code == Code::not_found) return state;
        return file.status();
    }
    state.exists = true;
    const HeldAs held = file->held();
    state.shared = held == HeldAs::shared;
    state.held = held != HeldAs::none || is_held(place.path);  // is_held() covers flock(2) too
    state.foreign = file->kind() == FileKind::foreign;
    state.damaged = file->kind() == FileKind::broken;
    if (!file->keeps_records()) return state;
    state.record = read_record(*file, &state.damaged);
    state.waiting = static_cast<std::int64_t>(waiters(*file).size());
    return state;
}

}  // namespace dcs::locks
