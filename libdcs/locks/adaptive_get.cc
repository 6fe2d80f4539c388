#include "base/clock.h"
#include "locks/adaptive_get.h"

#include <algorithm>
#include <ctime>
#include <sched.h>
#include <unistd.h>

#include "base/failpoint.h"
#include "base/planted.h"
#include "base/require.h"
#include "locks/files/lock_search.h"
#include "locks/run_end.h"
#include "locks/run_tree.h"
#include "process/table.h"

namespace dcs::locks {
namespace {

constexpr int opens_max = 64;  // a file replaced more often than this is under attack
constexpr int looks = 12, quick_looks = 6;
constexpr std::int64_t look_pause = 200'000;

std::int64_t plus(std::int64_t a, std::int64_t b) {
    std::int64_t sum = 0;
    return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

// A pass with a start later than now began in another boot, or before the clock was set back; it starts now. In literal
// mode `now` is taken from the caller as it is.
Moment start_of_pass(const LockRequest &request, const Moment &now) {
    const Moment &pass = request.pass;
    if (pass.wall == 0 && pass.mono == 0 && pass.boot == 0) return now;
    if (request.literal) return pass;
    if (pass.mono > now.mono || pass.boot > now.boot) return now;
    return {std::min(pass.wall, now.wall), pass.mono, pass.boot};
}

}  // namespace

Getting::Getting(const World &world, const LockRequest &request)
    : world_(world), request_(request), first_(world.now()), clock_(first_), pass_(start_of_pass(request, first_)) {}

Answer Getting::run() {
    while (turn() != Next::ended) {}  // each turn but the last waited, or another requester made progress
    return std::move(answer_);
}

Status Getting::open() {
    if (file.is_open()) return Status::ok();
    if (++opens_ > opens_max)
        return fail(Code::io_error, "lock " + request_.place.path + " is being replaced continually");
    Result<LockFile> opened = LockFile::open(request_.place, FileKind::atom, request_.mode);
    if (!opened) return opened.status();
    file = std::move(*opened);
    return check_foreign();
}

// A foreign file is locked and never written, so it has no record.
Status Getting::check_foreign() const {
    if (file.kind() != FileKind::foreign) return Status::ok();
    if (request_.if_elapsed == 0 && request_.expire_after == no_limit && !request_.queue) return Status::ok();
    return fail(Code::invalid, file.path() +
                                   " is not a DCS lock file, so it cannot store ifelapsed, expireafter or a "
                                   "queue; use a name, or a path that does not exist yet");
}

Getting::Next Getting::turn() {
    failpoint("locks.get.begin");
    if (Status s = open(); !s) return fail_with(std::move(s));
    if (request_.queue && !place_) return queue_up();
    if (planted("locks.check_outside")) read();
    const Result<bool> got = file.hold(request_.shared, Deadline::none());
    if (!got) return fail_with(got.status());
    return *got ? with_lock() : without_lock();
}

Getting::Next Getting::queue_up() {
    Result<QueuePlace> place = QueuePlace::enter(file, request_.shared);
    if (!place) return fail_with(place.status());
    place_.emplace(std::move(*place));
    const Result<bool> turn = place_->wait_for_turn(request_.wait);
    if (!turn) return fail_with(turn.status());
    clock_ = world_.now();
    if (*turn) return Next::again;
    read();
    return deny(Denied::busy, Ruling{Verdict::busy}, "earlier requests are waiting for " + file.path());
}

void Getting::read() {
    damaged_ = false;
    record = file.keeps_records() ? read_record(file, &damaged_) : Record{};
}

// The caller has the kernel lock: the record cannot change.
Getting::Next Getting::with_lock() {
    DCS_REQUIRE(file.is_open(), "the lock is on this file");
    failpoint("locks.get.locked");
    if (!planted("locks.no_still_named") && !file.still_named()) {
        place_.reset();
        file = LockFile();
        return Next::again;
    }
    clock_ = world_.now();  // later than the end of every earlier run; the request itself may be older
    if (file.kind() == FileKind::foreign) return grant(Ruling{});
    if (!request_.shared)
        if (Status s = file.make_whole(); !s) return fail_with(std::move(s));
    if (!planted("locks.check_outside")) read();
    settle();
    learn_limits();
    const Ruling ruling = rule(world_, record, false, asked(false));
    if (ruling.verdict != Verdict::too_soon) return take(ruling);
    if (settled_)
        if (Status s = write_record(file, record); !s) return fail_with(std::move(s));
    return deny(Denied::too_soon, ruling,
                file.path() +
                    (ruling.done_since ? " was done since this pass started"
                                       : " was run " + in_words(ruling.elapsed) + " ago") +
                    ", by " + described(record.owner, world_) + "; again in " + in_words(ruling.again_in));
}

// Shared holders do not write the record, because several may hold the lock at once.
void Getting::settle() {
    settled_ = false;
    if (request_.shared) return;
    if (damaged_) {
        record = Record{};
        record.outcome = Outcome::lost;
        log_event(request_.place, clock_.wall, "lost", Owner{}, 0, -1, "the record was damaged and is rebuilt");
        settled_ = true;
    }
    if (record.outcome != Outcome::running) return;
    answer_.after_crash = true;
    // A process that ends an expired holder keeps the reaper's byte until it has the lock or gives up.
    const bool reaped = file.first_locked(reaper_byte, 1) == reaper_byte;
    const RunEnding ending{reaped ? Outcome::expired : Outcome::crashed, clock_};
    end_run(world_, file, request_.place, request_.log, record, ending);
    settled_ = true;
}

void Getting::learn_limits() {
    if_elapsed_ = request_.if_elapsed;
    soft = hard = request_.expire_after;
    if (request_.if_elapsed != automatic && request_.expire_after != automatic) return;
    const Learned learned = learn(read_samples(file), read_denials(file), request_.bounds, request_.interval_hint,
                                  request_.if_elapsed, request_.expire_after);
    if (request_.if_elapsed == automatic) if_elapsed_ = learned.if_elapsed;
    if (request_.expire_after == automatic) {
        soft = learned.soft;
        hard = learned.hard;
    }
    record.burst_factor = learned.burst_factor;
    if (learned.spammed) spammer_ = learned.spammer;
}

Asked Getting::asked(bool held) {
    Asked asked{.if_elapsed = if_elapsed_};
    // A supervisor may let a busy command continue beyond its soft limit.
    asked.expire_after = held && record.owner.supervisor.pid != 0 ? hard : soft;
    asked.since = request_.since;
    asked.clock = clock_;
    asked.now = {plus(pass_.wall, clock_.wall - first_.wall), plus(pass_.mono, clock_.mono - first_.mono),
                 plus(pass_.boot, clock_.boot - first_.boot)};
    asked.literal = request_.literal;
    return asked;
}

Getting::Next Getting::take(const Ruling &ruling) {
    if (request_.shared) return grant(ruling);
    DCS_REQUIRE(record.outcome != Outcome::running, "the previous run is ended in the record");
    if (!planted("locks.generation")) ++record.generation;
    // A new file starts above every earlier generation, because a token must not repeat.
    if (record.generation <= 1)
        record.generation = static_cast<std::uint64_t>(std::max<std::int64_t>(clock_.wall, 1000)) / 1000;
    record.outcome = Outcome::running;
    record.owner = own_owner(world_);
    record.started = clock_;
    record.started_boot = world_.boot;
    record.if_elapsed = if_elapsed_;
    record.expire_after = soft;
    ++record.grants;
    failpoint("locks.get.before_record");
    if (Status s = write_record(file, record); !s) return fail_with(std::move(s));
    failpoint("locks.get.after_record");
    return grant(ruling);
}

Getting::Next Getting::grant(const Ruling &ruling) {
    DCS_REQUIRE(file.is_open() && (request_.shared || !file.keeps_records() || record.outcome == Outcome::running),
                "a run is recorded before its lock is granted");
    place_.reset();
    waited = std::max<std::int64_t>(clock_.mono - first_.mono, 0);
    answer_.denied = Denied::no;
    answer_.ruling = ruling;
    if (ruling.clock_stepped) {
        answer_.text = "the last run of " + file.path() + " is dated in the future: the clock was set back";
        if (request_.log)
            log_event(request_.place, clock_.wall, "clock", record.owner, record.generation, -1, answer_.text);
    } else if (answer_.after_crash && !answer_.took_over) {
        answer_.text = "the previous holder died without releasing " + file.path();
    }
    return Next::ended;
}

Getting::Next Getting::deny(Denied why, const Ruling &ruling, const std::string &text) {
    DCS_REQUIRE(why != Denied::no && !text.empty(), "a refusal has a reason");
    place_.reset();
    answer_.denied = why;
    answer_.ruling = ruling;
    answer_.holder = record.owner;
    answer_.text = text;
    const bool too_soon = why == Denied::too_soon;
    const Owner self = own_owner(world_);
    const bool spam = !spammer_.empty();
    if (request_.log)
        log_event(request_.place, clock_.wall, spam ? "spam" : denied_word(why), self, record.generation,
                  too_soon ? if_elapsed_ : record.expire_after, spam ? "by " + spammer_ + "; " + text : text);
    if (too_soon) file.let_go();
    if (file.keeps_records())
        note_denial(file, Denial{clock_.wall, too_soon, self.uid, self.process.pid, ::getppid(), self.command});
    file = LockFile();
    return Next::ended;
}

Getting::Next Getting::fail_with(Status status) {
    DCS_REQUIRE(!status, "a failure has a reason");
    place_.reset();
    answer_.denied = Denied::failed;
    answer_.text = status.text;
    answer_.status = std::move(status);
    if (file.is_open()) file.let_go();
    file = LockFile();
    return Next::ended;
}

bool Getting::over() const { return request_.wait.boot <= boot_clock().ns; }

Deadline Getting::at_most(std::int64_t nanoseconds) const {
    return Deadline{std::min(request_.wait.boot, plus(boot_clock().ns, nanoseconds))};
}

// --- the lock is held -------------------------------------------------------------------------------

Getting::Next Getting::without_lock() {
    read();
    if (record.outcome != Outcome::running || file.held() == HeldAs::shared) return wait_for_unknown();
    clock_ = world_.now();
    learn_limits();
    const Ruling ruling = rule(world_, record, true, asked(true));
    if (ruling.verdict == Verdict::expired && !request_.shared) return reap();
    if (ruling.verdict == Verdict::too_soon || over())
        return deny(ruling.verdict == Verdict::too_soon ? Denied::too_soon : Denied::busy, ruling,
                    file.path() + " has been held by " + described(record.owner, world_) + " for " +
                        in_words(ruling.age) +
                        (ruling.again_in == no_limit ? "" : "; expires in " + in_words(ruling.again_in)));
    return wait_until_expiry(ruling);
}

// The record does not state a running holder: the holder is deciding at this moment, or shares the lock, or does not
// write records.
Getting::Next Getting::wait_for_unknown() {
    const bool shared = file.held() == HeldAs::shared;
    for (int i = 0; i < looks && !shared && file.keeps_records(); ++i) {
        timespec pause = {0, look_pause};
        if (i < quick_looks) ::sched_yield();
        else ::nanosleep(&pause, nullptr);
        read();
        if (record.outcome == Outcome::running) return Next::again;
        const Result<bool> got = file.hold(request_.shared, Deadline::none());
        if (!got) return fail_with(got.status());
        if (*got) return with_lock();
    }
    // A holder that takes the lock after this point expires no sooner.
    learn_limits();
    const Result<bool> got = file.hold(request_.shared, over() ? Deadline::none() : at_most(soft));
    if (!got) return fail_with(got.status());
    if (*got) return with_lock();
    clock_ = world_.now();
    if (!over()) return Next::again;
    Ruling ruling{Verdict::busy};
    ruling.again_in = no_limit;
    if (shared) return deny(Denied::busy, ruling, file.path() + " is held by processes that share it");
    const std::vector<Owner> owners = owners_of_lock(world_, file, holder_byte);
    const std::uint64_t last = record.owner.cookie;  // of a run that has ended
    record.owner = owners.empty() ? Owner{} : owners.front();
    if (owners.empty()) return deny(Denied::busy, ruling, file.path() + " is held by a process that wrote no record");
    const bool left = last != 0 && carries_cookie(environment_of(record.owner.process.pid), last);
    return deny(Denied::busy, ruling,
                file.path() + " is held by " + described(record.owner, world_) +
                    (left ? ", which the last command left running" : ", which wrote no record") +
                    "; `dcs_lock break " + file.path() + "` ends it");
}

Getting::Next Getting::wait_until_expiry(const Ruling &ruling) {
    constexpr std::int64_t least = 1'000'000;  // in literal mode, whole minutes may round down to 0
    const std::int64_t left = request_.shared ? no_limit : std::max(ruling.again_in, least);
    const Result<bool> got = file.hold(request_.shared, at_most(left));
    if (!got) return fail_with(got.status());
    if (*got) return with_lock();
    if (!file.still_named()) {
        place_.reset();
        file = LockFile();
    }
    return Next::again;
}

}  // namespace dcs::locks
