// The holder has expired: one requester at a time ends it and takes over.
#include <algorithm>

#include "base/clock.h"
#include "base/failpoint.h"
#include "base/planted.h"
#include "base/require.h"
#include "locks/adaptive_get.h"
#include "locks/kill_carefully.h"
#include "locks/run_end.h"
#include "locks/files/world.h"

namespace dcs::locks {
namespace {

Denied denied_by(Killed killed) {
    switch (killed) {
    case Killed::not_permitted: return Denied::not_permitted;
    case Killed::own_ancestor: return Denied::own_ancestor;
    case Killed::elsewhere: return Denied::elsewhere;
    case Killed::gone:
    case Killed::unkillable: break;
    }
    return Denied::unkillable;
}

// Holds the reaper's byte during its lifetime.
class Reaper {
public:
    explicit Reaper(const LockFile &file) : file_(file) {}
    Reaper(const Reaper &) = delete;
    Reaper &operator=(const Reaper &) = delete;
    ~Reaper() {
        if (file_.is_open()) file_.unlock(reaper_byte, 1);
    }

private:
    const LockFile &file_;
};

}  // namespace

Getting::Next Getting::reap() {
    DCS_REQUIRE(!request_.shared, "a shared request ends no holder");
    const Result<bool> got = file.lock(reaper_byte, 1, false, request_.wait);
    if (!got) return fail_with(got.status());
    if (!*got)
        return deny(Denied::busy, Ruling{Verdict::busy},
                    described(record.owner, world_) + " has held " + file.path() +
                        " beyond its limit and is being ended by another process");
    const Reaper reaper(file);
    failpoint("locks.reap.locked");
    if (planted("locks.no_reread")) return end_holder();
    // The holder may have ended meanwhile, or another reaper may have taken over.
    const std::uint64_t generation = record.generation;
    const Result<bool> free = file.hold(false, Deadline::none());
    if (!free) return fail_with(free.status());
    if (*free) return with_lock();
    read();
    clock_ = world_.now();
    if (record.generation != generation || record.outcome != Outcome::running ||
        rule(world_, record, true, asked(true)).verdict != Verdict::expired)
        return Next::again;
    return end_holder();
}

Getting::Next Getting::end_holder() {
    DCS_REQUIRE(file.is_open() && file.keeps_records(), "a holder has a record");
    const Ruling ruling = rule(world_, record, true, asked(true));
    const std::string holder = described(record.owner, world_);
    const std::int64_t since = clock_.wall - record.expired_since_wall;
    if (record.expired_in_row >= static_cast<std::uint32_t>(std::max(request_.max_kills, 0)) &&
        (request_.max_kills <= 0 || (since >= 0 && since <= kill_window)))
        return deny(Denied::giving_up, ruling,
                    holder + " has held " + file.path() + " beyond its limit, like " +
                        std::to_string(record.expired_in_row) + " earlier runs that were ended; an operator is needed");
    if (request_.log)
        log_event(request_.place, clock_.wall, "kill", record.owner, record.generation, asked(true).expire_after,
                  "held for " + in_words(ruling.age) + "; being ended by " + described(own_owner(world_), world_));
    failpoint("locks.reap.judged");
    const std::uint64_t generation = record.generation;
    const KillReport report = kill_believed(world_, file, holder_byte, record.owner, request_.grace, ruling.age);
    failpoint("locks.reap.killed");
    if (report.result == Killed::gone) return take_over(generation);
    // It was not ended, perhaps because it has just released the lock by itself.
    const Result<bool> free = file.hold(false, Deadline::none());
    if (!free) return fail_with(free.status());
    if (*free) return with_lock();
    read();
    if (record.generation != generation || record.outcome != Outcome::running) return Next::again;
    return deny(denied_by(report.result), ruling,
                file.path() + " is held by " + holder + " beyond its limit; " + report.text);
}

// The tree has ended; the kernel frees its locks at the end of exit, after its memory.
Getting::Next Getting::take_over(std::uint64_t generation) {
    const std::int64_t start = boot_clock().ns;
    const std::int64_t end = start + std::max<std::int64_t>(request_.grace.after_kill, second);
    for (std::int64_t until = start;; until = std::min(end, boot_clock().ns + second / 10)) {
        const Result<bool> got = file.hold(false, until == start ? Deadline::none() : Deadline{until});
        if (!got) return fail_with(got.status());
        if (*got) break;
        if (!planted("locks.no_reread")) read();  // another requester may have taken the lock
        clock_ = world_.now();
        if (record.generation != generation) return Next::again;
        if (boot_clock().ns >= end)
            return deny(Denied::unkillable, Ruling{Verdict::expired},
                        described(record.owner, world_) + " was ended, but a process outside its tree has inherited " +
                            file.path() + "; lsof shows it");
    }
    if (!file.still_named()) return with_lock();
    if (!planted("locks.no_reread")) read();
    clock_ = world_.now();
    if (damaged_ || record.generation != generation) return with_lock();
    // A supervisor that was asked to end the run has recorded its end.
    if (record.outcome == Outcome::running) {
        RunEnding ending{Outcome::expired, clock_};
        ending.text = "ended by " + described(own_owner(world_), world_);
        end_run(world_, file, request_.place, request_.log, record, ending);
    }
    answer_.took_over = true;
    learn_limits();
    return take(Ruling{});
}

}  // namespace dcs::locks
