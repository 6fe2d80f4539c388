#include "locks/files/queue.h"

#include <algorithm>

#include "base/failpoint.h"
#include "base/planted.h"
#include "base/require.h"
#include "locks/files/block.h"
#include "locks/files/world.h"
#include "process/table.h"

namespace dcs::locks {
namespace {

constexpr std::size_t note_bytes = 64, notes_kept = 256;
constexpr std::size_t places_max = 100'000;  // more than there can be processes
constexpr std::int64_t tickets_max = last_byte - ticket_byte - 1;
using Note = Block<note_bytes>;

template <class Io, class Fields> void waiter_fields(Io &io, Fields &waiter) {
    process_fields(io, waiter.process);
    io(waiter.since_wall, waiter.shared);
}

std::int64_t note_at(std::int64_t ticket) {
    return waiters_at + static_cast<std::int64_t>(static_cast<std::size_t>(ticket) % notes_kept * note_bytes);
}

// A hint where to begin the search; 0 is always valid.
std::int64_t read_counter(const LockFile &file) {
    Note block;
    if (!file.keeps_records() || !block.read_sealed(file.fd(), counter_at)) return 0;
    const auto next = static_cast<std::int64_t>(block.get(8));
    return next >= 0 && next < tickets_max ? next : 0;
}

// Both are hints: an error affects only the listing, and how long the next requester searches for its place.
void write_notes(const LockFile &file, std::int64_t ticket, bool shared) {
    if (!file.keeps_records()) return;
    Note counter, note;
    counter.put(static_cast<std::uint64_t>(ticket + 1), 8);
    (void)counter.write_sealed(file.fd(), counter_at);
    Waiter waiter{.process = own_identity(), .since_wall = this_world().now().wall, .shared = shared};
    note.put(static_cast<std::uint64_t>(ticket), 8);
    Writing<note_bytes> out{note};
    waiter_fields(out, waiter);
    (void)note.write_sealed(file.fd(), note_at(ticket));
}

Waiter read_note(const LockFile &file, std::int64_t ticket) {
    Waiter waiter{.ticket = ticket};
    Note note;
    if (!file.keeps_records() || !note.read_sealed(file.fd(), note_at(ticket)) ||
        note.get(8) != static_cast<std::uint64_t>(ticket))
        return waiter;
    Reading<note_bytes> in{note};
    waiter_fields(in, waiter);
    ProcessStat stat;
    if (ProcessHandle::open(waiter.process) && read_stat(waiter.process.pid, stat)) waiter.state = stat.state;
    else waiter.process = {};
    return waiter;
}

// Whether another program has locked every byte of the file.
bool locked_as_a_whole(const LockFile &file) {
    const std::int64_t start = file.first_locked(guard_byte, 1);
    return start >= 0 && start < guard_byte;
}

}  // namespace

QueuePlace &QueuePlace::operator=(QueuePlace &&other) noexcept {
    if (this != &other) {
        leave();
        file_ = std::exchange(other.file_, nullptr);
        ticket_ = std::exchange(other.ticket_, -1);
        shared_ = other.shared_;
    }
    return *this;
}

Result<QueuePlace> QueuePlace::enter(const LockFile &file, bool shared) {
    QueuePlace place;
    place.file_ = &file;
    place.shared_ = shared;
    if (locked_as_a_whole(file)) return place;
    if (Status s = place.get_ticket(); !s) return s;
    return place;
}

Status QueuePlace::get_ticket() {
    DCS_REQUIRE(file_ != nullptr && ticket_ < 0, "a waiter has one place");
    const Result<Guard> guard = Guard::take(*file_);
    if (!guard) return guard.status();
    // The locked places correct a counter that was lost or is behind.
    std::int64_t ticket = read_counter(*file_), end = 0;
    for (std::size_t hops = 0; !planted("locks.queue_trusts_counter"); ++hops) {
        const std::int64_t from = ticket_byte + ticket;
        if (file_->first_locked(from, last_byte - from, &end) < 0) break;
        ticket = end - ticket_byte;
        if (ticket >= tickets_max || hops > places_max)
            return fail(Code::io_error, "all places in the queue of " + file_->path() + " are locked");
    }
    failpoint("locks.queue.before_ticket");
    Result<bool> got = file_->lock(ticket_byte + ticket, 1, shared_, Deadline::none());
    if (!got) return got.status();
    if (!*got)
        return fail(Code::io_error, "another process holds places in the queue of " + file_->path() + " out of order");
    DCS_REQUIRE(ticket >= 0 && ticket < tickets_max, "a place lies between the guard and the last byte");
    ticket_ = ticket;
    failpoint("locks.queue.after_ticket");
    write_notes(*file_, ticket, shared_);
    return Status::ok();
}

Result<bool> QueuePlace::wait_for_turn(const Deadline &until) {
    DCS_REQUIRE(file_ != nullptr, "a waiter has entered the queue");
    while (ticket_ < 0) {
        Result<bool> free = file_->lock(guard_byte, 1, false, until);
        if (!free || !*free) return free;
        file_->unlock(guard_byte, 1);
        if (Status s = get_ticket(); !s && s.code != Code::refused) return s;  // refused: the file is locked again
    }
    if (ticket_ == 0) return true;
    // First the predecessor alone, so that each hand-over wakes one waiter. It may have given up or died, so all of
    // them after that.
    Result<bool> alone = file_->lock(ticket_byte + ticket_ - 1, 1, shared_, until);
    if (!alone || !*alone) return alone;
    failpoint("locks.queue.before_range");
    file_->unlock(ticket_byte + ticket_ - 1, 1);
    if (planted("locks.queue_no_range")) return true;
    Result<bool> first = file_->lock(ticket_byte, ticket_, shared_, until);
    if (first && *first) file_->unlock(ticket_byte, ticket_);
    return first;
}

void QueuePlace::leave() {
    if (ticket_ >= 0 && file_->is_open()) file_->unlock(ticket_byte + ticket_, 1);
    ticket_ = -1;
    file_ = nullptr;
}

std::vector<Waiter> waiters(const LockFile &file) {
    std::vector<Waiter> found;
    // The kernel's list is unordered, so each answer splits the range that is left. The last byte of a locked
    // range is a place; its owner has locked the bytes before it for a moment, to examine them.
    std::vector<std::pair<std::int64_t, std::int64_t>> left = {{ticket_byte, last_byte}};
    while (!left.empty() && found.size() < places_max) {
        const auto [from, to] = left.back();
        left.pop_back();
        std::int64_t end = 0;
        const std::int64_t start = from < to ? file.first_locked(from, to - from, &end) : -1;
        if (start < 0 || end > last_byte) continue;
        found.push_back(read_note(file, end - 1 - ticket_byte));
        if (start > from) left.push_back({from, start});
        if (end < to) left.push_back({end, to});
    }
    std::sort(found.begin(), found.end(), [](const Waiter &a, const Waiter &b) { return a.ticket < b.ticket; });
    const auto same = [](const Waiter &a, const Waiter &b) { return a.ticket == b.ticket; };
    found.erase(std::unique(found.begin(), found.end(), same), found.end());
    return found;
}

bool has_waiters(const LockFile &file) {
    const std::int64_t start = file.first_locked(ticket_byte, last_byte - ticket_byte);
    return start >= ticket_byte;
}

}  // namespace dcs::locks
