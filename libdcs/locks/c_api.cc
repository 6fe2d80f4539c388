// The C functions of include/dcs_lock.h.
#include <algorithm>
#include <cstring>
#include <ctime>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/no_cancel.h"
#include "base/per_thread.h"
#include "base/sized.h"
#include "dcs_lock.h"
#include "locks/adaptive_lock.h"
#include "locks/counted_slots.h"

struct d_lock {
    dcs::locks::AdaptiveLock lock;
    dcs::locks::Slots instance;  // of the operator, if instances are counted
};

struct d_slots {
    dcs::locks::Slots slots;
};

namespace dcs::locks::c_api {
namespace {

struct ErrorText : std::string {};
std::string &error_text() { return PerThread<ErrorText>::mine(); }

// Returns `reason`, sets this thread's error text.
int refuse(int reason, const std::string &text) {
    error_text() = text;
    return reason;
}
int refuse(const Status &status) { return refuse(D_LOCK_FAILED, status.text); }

Deadline deadline(std::int64_t wait) {
    if (wait <= 0) return Deadline::none();
    std::int64_t end = 0;
    if (__builtin_add_overflow(boot_clock().ns, wait, &end)) return Deadline::never();
    return Deadline{end};
}

void copy(char *to, std::size_t room, const std::string &from) {
    const std::size_t length = std::min(room - 1, from.size());
    std::memcpy(to, from.data(), length);
    std::memset(to + length, 0, room - length);
}
template <std::size_t Room> void copy(char (&to)[Room], const std::string &from) { copy(to, Room, from); }

// No exception leaves a C function, and no cancelled thread either.
template <class Body> int guarded(Body body) {
    const NoCancel whole;
    try {
        return body();
    } catch (const std::exception &problem) {
        return refuse(D_LOCK_FAILED, std::string("out of memory: ") + problem.what());
    }
}

std::string text_of(const char *text) { return text == nullptr ? std::string() : text; }

d_lock_request plain_request() {
    const LockRequest defaults;
    d_lock_request request{};
    request.expire_after = D_LOCK_NEVER;
    request.grace[0] = defaults.grace.after_int;
    request.grace[1] = defaults.grace.after_term;
    request.grace[2] = defaults.grace.after_kill;
    request.max_kills = defaults.max_kills;
    return request;
}

// The clocks of this boot at a given wall clock time.
Moment moment_of(std::int64_t wall) {
    const Moment now = this_world().now();
    std::int64_t ago = 0;
    if (wall == 0 || __builtin_sub_overflow(now.wall, wall, &ago)) return {};
    return {wall, now.mono - ago, now.boot - ago};
}

// From the paper's minutes; INT64_MIN for an invalid number, so that it is refused.
std::int64_t nanoseconds(long minutes) {
    if (minutes == D_LOCK_AUTO) return automatic;
    if (minutes < 0) return INT64_MIN;
    return minutes >= D_LOCK_NEVER_MINUTES ? no_limit : minutes * D_LOCK_MINUTE;
}

Result<LockRequest> request_of(const d_lock_request &wish) {
    const std::int64_t least = std::min({wish.wait, wish.now, wish.interval, wish.expire_max, wish.grace[0],
                                         wish.grace[1], wish.grace[2], std::int64_t{wish.max_kills}});
    if (least < 0)  // D_LOCK_AUTO is no time to wait
        return fail(Code::invalid, std::to_string(least) +
                                       " in a request: wait, now, interval, expire_max, grace and "
                                       "max_kills must not be negative");
    const bool by_path = wish.path != nullptr;
    if (!by_path && wish.operator_ == nullptr) return fail(Code::invalid, "a lock needs an operator or a path");
    Result<Place> place = by_path ? place_of(wish.path, ".lock")
                                  : place_of(Atom{wish.operator_, text_of(wish.operand), text_of(wish.host)}, ".lock");
    if (!place) return place.status();
    if (wish.instances != 0) place->one_kind = false;
    LockRequest request{.place = std::move(*place)};
    if (by_path && request.place.named) return fail(Code::invalid, "the path of a lock must have a '/' in it");
    request.if_elapsed = wish.if_elapsed;
    request.expire_after = wish.expire_after;
    if (wish.expire_max > 0) request.bounds.expire_max = wish.expire_max;
    request.interval_hint = wish.interval;
    request.pass = moment_of(wish.now);
    request.wait = deadline(wish.wait);
    request.grace = {wish.grace[0], wish.grace[1], wish.grace[2]};
    request.max_kills = wish.max_kills;
    request.since = wish.since_start != 0 ? Since::start : Since::end;
    request.queue = wish.queue != 0;
    request.shared = wish.shared != 0;
    request.literal = wish.literal != 0;
    return request;
}

int reason_of(Denied denied) {
    switch (denied) {
    case Denied::no: return D_LOCK_GRANTED;
    case Denied::busy: return D_LOCK_BUSY;
    case Denied::too_soon: return D_LOCK_TOO_SOON;
    case Denied::not_permitted: return D_LOCK_NOT_PERMITTED;
    case Denied::own_ancestor: return D_LOCK_OWN_ANCESTOR;
    case Denied::unkillable: return D_LOCK_UNKILLABLE;
    case Denied::elsewhere: return D_LOCK_ELSEWHERE;
    case Denied::giving_up: return D_LOCK_GIVING_UP;
    case Denied::failed: break;
    }
    return D_LOCK_FAILED;
}

void tell(d_lock_answer *to, const Answer &answer, const AdaptiveLock &lock) {
    to->reason = reason_of(answer.denied);
    to->took_over = answer.took_over;
    to->after_crash = answer.after_crash;
    to->clock_stepped = answer.ruling.clock_stepped;
    to->done_since = answer.ruling.done_since;
    to->elapsed = answer.ruling.elapsed;
    to->age = answer.ruling.age;
    to->again_in = answer.ruling.again_in;
    to->holder = answer.holder.process.pid;
    to->holder_uid = answer.holder.uid;
    copy(to->holder_host, answer.holder.host);
    copy(to->holder_command, answer.holder.command);
    if (!lock.held()) return;
    to->token = lock.generation();
    to->soft = lock.soft();
    to->hard = lock.hard();
}

// Takes the slot of the operator before the atom, so that the atom is never held by a requester without a slot.
int take_instance(const d_lock_request &wish, const LockRequest &request, Slots &instance) {
    if (wish.instances == 0) return D_LOCK_GRANTED;
    if (wish.operator_ == nullptr) return refuse(D_LOCK_FAILED, "instances are counted for an operator, not a path");
    Result<Place> place = place_of(Atom{wish.operator_, "", text_of(wish.host)}, ".slots");
    if (!place) return refuse(place.status());
    place->one_kind = false;
    Result<Slots> slot = Slots::take(this_world(), {{*place, wish.instances}}, request.wait, text_of(wish.operand));
    if (!slot) return refuse(slot.status().code == Code::limit ? D_LOCK_LIMIT : D_LOCK_FAILED, slot.status().text);
    instance = std::move(*slot);
    return D_LOCK_GRANTED;
}

int get(const d_lock_request &wish, d_lock_answer *answer, d_lock &lock) {
    Result<LockRequest> request = request_of(wish);
    if (!request) return refuse(request.status());
    if (const int reason = take_instance(wish, *request, lock.instance); reason != D_LOCK_GRANTED) return reason;
    const Answer got = AdaptiveLock::get(this_world(), *request, lock.lock);
    tell(answer, got, lock.lock);
    if (got.denied == Denied::no) return D_LOCK_GRANTED;
    lock.instance.release();
    return refuse(reason_of(got.denied), got.text);
}

// The locks of GetLock, the latest last. A run that its thread has not released at its end did not complete.
struct Stack {
    std::vector<std::unique_ptr<d_lock>> locks;
    ~Stack() {
        for (auto &one : locks) one->lock.abandon();
    }
};
thread_local Stack stack;

}  // namespace
}  // namespace dcs::locks::c_api

using namespace dcs::locks;
using c_api::guarded;
using c_api::refuse;

const char *d_lock_reason_word(int reason) {
    if (reason == D_LOCK_LIMIT) return "limit";
    for (const Denied denied : {Denied::no, Denied::busy, Denied::too_soon, Denied::not_permitted, Denied::own_ancestor,
                                Denied::unkillable, Denied::elsewhere, Denied::giving_up, Denied::failed})
        if (c_api::reason_of(denied) == reason) return denied_word(denied);
    return "unknown";
}

const char *d_lock_errortext(void) { return c_api::error_text().c_str(); }

int GetLock(const char *operator_, const char *operand, long ifelapsed, long expireafter, const char *host,
            time_t now) {
    d_lock_request wish;
    d_lock_init(&wish);
    wish.operator_ = operator_;
    wish.operand = operand;
    wish.host = host;
    wish.if_elapsed = c_api::nanoseconds(ifelapsed);
    wish.expire_after = c_api::nanoseconds(expireafter);
    wish.now = static_cast<std::int64_t>(now) * D_LOCK_SECOND;
    return guarded([&] {
               auto lock = std::make_unique<d_lock>();
               d_lock_answer answer{};
               if (const int reason = c_api::get(wish, &answer, *lock); reason != D_LOCK_GRANTED) return reason;
               c_api::stack.locks.push_back(std::move(lock));
               return static_cast<int>(D_LOCK_GRANTED);
           }) == D_LOCK_GRANTED;
}

int ReleaseCurrentLock(void) {
    return guarded([] {
        auto &locks = c_api::stack.locks;
        if (locks.empty()) return refuse(D_LOCK_FAILED, "this thread has no lock from GetLock to release");
        locks.back()->lock.release({});
        locks.pop_back();
        return static_cast<int>(D_LOCK_GRANTED);
    });
}

void d_lock_init_sized(d_lock_request *request, size_t struct_size) {
    dcs::copy_out(c_api::plain_request(), request, struct_size);
}

int d_lock_get(const d_lock_request *request, d_lock_answer *answer, d_lock **lock) {
    const std::size_t size = answer != nullptr ? answer->struct_size : 0;
    if (answer != nullptr && !dcs::sound_size<d_lock_answer>(size)) return refuse(dcs::bad_struct_size("answer", size));
    d_lock_answer told{};
    told.reason = D_LOCK_FAILED;
    if (answer != nullptr) dcs::copy_out(told, answer, size);
    if (lock == nullptr || request == nullptr) return refuse(D_LOCK_FAILED, "d_lock_get needs a request and a lock");
    *lock = nullptr;
    return guarded([&] {
        const auto wish = dcs::known(request, "request", c_api::plain_request());
        if (!wish) return refuse(wish.status());
        auto taken = std::make_unique<d_lock>();
        const int reason = c_api::get(*wish, &told, *taken);
        told.reason = reason;
        if (answer != nullptr) dcs::copy_out(told, answer, size);
        if (reason == D_LOCK_GRANTED) *lock = taken.release();
        return reason;
    });
}

int d_lock_release(d_lock *lock, int succeeded) {
    if (lock == nullptr) return refuse(D_LOCK_FAILED, "there is no lock to release");
    return guarded([&] {
        const std::unique_ptr<d_lock> owned(lock);
        owned->lock.release({succeeded != 0 ? Outcome::done : Outcome::failed, {}, -1, -1, false});
        owned->instance.release();
        return static_cast<int>(D_LOCK_GRANTED);
    });
}

void d_lock_abandon(d_lock *lock) {
    if (lock == nullptr) return;
    const dcs::NoCancel whole;
    lock->lock.abandon();
    lock->instance.abandon();
    delete lock;
}

int d_lock_adopt(d_lock *lock) {
    if (lock == nullptr) return refuse(D_LOCK_FAILED, "there is no lock to adopt");
    return guarded([&] {
        lock->lock.adopt();
        if (lock->instance.held()) lock->instance.set_owner(this_world(), lock->lock.owner());
        return static_cast<int>(D_LOCK_GRANTED);
    });
}

int d_lock_fd(const d_lock *lock) { return lock == nullptr ? -1 : lock->lock.fd(); }
std::uint64_t d_lock_token(const d_lock *lock) { return lock == nullptr ? 0 : lock->lock.generation(); }

int d_lock_look(const char *operator_, const char *operand, const char *host, d_lock_state *state) {
    if (operator_ == nullptr || state == nullptr)
        return refuse(D_LOCK_FAILED, "d_lock_look needs an operator and a state to fill in");
    const std::size_t size = state->struct_size;
    if (!dcs::sound_size<d_lock_state>(size)) return refuse(dcs::bad_struct_size("state", size));
    return guarded([&] {
        d_lock_state to{};
        dcs::copy_out(to, state, size);
        const auto place = place_of(Atom{operator_, c_api::text_of(operand), c_api::text_of(host)}, ".lock");
        if (!place) return refuse(place.status());
        const auto seen = look_at(this_world(), *place);
        if (!seen) return refuse(seen.status());
        to.exists = seen->exists;
        to.held = seen->held;
        to.shared = seen->shared;
        to.waiting = static_cast<int>(std::min<std::int64_t>(seen->waiting, INT32_MAX));
        to.token = seen->record.generation;
        to.holder = seen->record.owner.process.pid;
        to.holder_uid = seen->record.owner.uid;
        c_api::copy(to.holder_host, seen->record.owner.host);
        c_api::copy(to.holder_command, seen->record.owner.command);
        c_api::copy(to.outcome, outcome_name(seen->record.outcome));
        to.started = seen->record.started.wall;
        to.ended = seen->record.ended.wall;
        dcs::copy_out(to, state, size);
        return static_cast<int>(D_LOCK_GRANTED);
    });
}

int d_lock_enter(const char *name, std::int64_t wait, d_lock **lock) {
    d_lock_request request;
    d_lock_init(&request);
    request.operator_ = name;
    request.wait = wait;
    request.queue = 1;
    return d_lock_get(&request, nullptr, lock);
}

int d_lock_leave(d_lock *lock) { return d_lock_release(lock, 1); }

int d_slot_take(const char *const names[], const int limits[], std::size_t count, std::int64_t wait, const char *note,
                d_slots **slots) {
    if (slots == nullptr) return refuse(D_LOCK_FAILED, "d_slot_take needs a pointer for the slots");
    *slots = nullptr;
    if (names == nullptr || limits == nullptr || count == 0) return refuse(D_LOCK_FAILED, "no limit was named");
    return guarded([&] {
        if (wait < 0) return refuse(D_LOCK_FAILED, "wait is " + std::to_string(wait) + ": it must not be negative");
        std::vector<SlotWish> wishes;
        for (std::size_t i = 0; i < count; ++i) {
            if (names[i] == nullptr) return refuse(D_LOCK_FAILED, "the name of a limit is missing");
            const auto place = place_of(std::string(names[i]), ".slots");
            if (!place) return refuse(place.status());
            wishes.push_back({*place, limits[i]});
        }
        auto taken = Slots::take(this_world(), wishes, c_api::deadline(wait), note == nullptr ? "" : note);
        if (!taken)
            return refuse(taken.status().code == dcs::Code::limit ? D_LOCK_LIMIT : D_LOCK_FAILED, taken.status().text);
        *slots = new d_slots{std::move(*taken)};
        return static_cast<int>(D_LOCK_GRANTED);
    });
}

int d_slot_number(const d_slots *slots, std::size_t which) {
    if (slots == nullptr) return -1;
    const auto numbers = slots->slots.numbers();
    return which < numbers.size() ? numbers[which] : -1;
}

int d_slot_fd(const d_slots *slots, std::size_t which) {
    if (slots == nullptr) return -1;
    const auto fds = slots->slots.lock_fds();
    return which < fds.size() ? fds[which] : -1;
}

int d_slot_release(d_slots *slots) {
    if (slots == nullptr) return refuse(D_LOCK_FAILED, "there are no slots to release");
    return guarded([&] {
        const std::unique_ptr<d_slots> owned(slots);
        owned->slots.release();
        return static_cast<int>(D_LOCK_GRANTED);
    });
}

int d_slot_list(const char *name, d_slot_holder *holders, std::size_t room, std::size_t *count) {
    if (name == nullptr || count == nullptr || (holders == nullptr && room > 0))
        return refuse(D_LOCK_FAILED, "d_slot_list needs a name, a count and an array for the holders");
    *count = 0;
    const std::size_t stride = room > 0 ? holders->struct_size : 0;
    if (room > 0 && !dcs::sound_size<d_slot_holder>(stride)) return refuse(dcs::bad_struct_size("holders[0]", stride));
    return guarded([&] {
        const auto place = place_of(std::string(name), ".slots");
        if (!place) return refuse(place.status());
        const auto seen = slot_holders(*place);
        if (seen.status().code == dcs::Code::not_found) return static_cast<int>(D_LOCK_GRANTED);
        if (!seen) return refuse(seen.status());
        for (const SlotHolder &holder : *seen) {
            if (!holder.held) continue;
            if (const std::size_t i = (*count)++; i < room) {
                d_slot_holder to{};
                to.number = holder.number;
                to.pid = holder.owner.process.pid;
                to.uid = holder.owner.uid;
                to.since = holder.since_wall;
                c_api::copy(to.command, holder.owner.command);
                c_api::copy(to.note, holder.note);
                dcs::copy_out(to, dcs::at_stride(holders, stride, i), stride);
            }
        }
        return static_cast<int>(D_LOCK_GRANTED);
    });
}
