#include "locks/counted_slots.h"

#include <algorithm>
#include <cerrno>
#include <memory>
#include <sys/stat.h>
#include <unistd.h>

#include "base/failpoint.h"
#include "base/planted.h"
#include "base/require.h"
#include "locks/files/lock_search.h"
#include "locks/files/queue.h"
#include "locks/slot_wait.h"

namespace dcs::locks {
namespace {

constexpr int shard_tries = 64;
constexpr std::size_t named_max = 3;  // holders in a refusal

// The state of one limit during an attempt. Guards point to heads, so these must not move.
struct Limit {
    const SlotWish *wish = nullptr;
    std::size_t index = 0;  // of the wish
    LockFile head, shard;
    struct stat st = {};
    std::unique_ptr<Guard> guard;
    std::unique_ptr<SlotTable> table;
    int number = -1;
    bool owns_turn = false;  // first in its queue

    const LockFile &locked() const { return shard.is_open() ? shard : head; }
};
using Limits = std::vector<Limit>;

struct Attempt {
    int busy = -1;  // index of the limit that is full or has other waiters; -1: granted
    bool others_wait = false;
    bool changed = false;             // a holder died while they were listed: a wait for the listed ones would
                                      // miss that
    std::vector<SlotHolder> holders;  // of the full limit
};

Owner this_process(const World &world) {
    return {.process = own_identity(),
            .uid = ::geteuid(),
            .boot = world.boot,
            .pid_namespace = world.pid_namespace,
            .host = world.host,
            .command = program_invocation_short_name};
}

Status check(const std::vector<SlotWish> &wishes) {
    if (wishes.empty()) return fail(Code::invalid, "no limit was named");
    for (const SlotWish &w : wishes) {
        if (w.limit < 0 || w.limit > slots_max)
            return fail(Code::invalid, "a limit of " + std::to_string(w.limit) + " slots for " + w.place.path +
                                           "; it must be a number from 0 to " + std::to_string(slots_max));
        if (w.limit == 0) return fail(Code::limit, "no slots are permitted at " + w.place.path + " (its limit is 0)");
    }
    return Status::ok();
}

Result<Limits> open_limits(const std::vector<SlotWish> &wishes, unsigned mode) {
    Limits limits(wishes.size());
    for (std::size_t i = 0; i < wishes.size(); ++i) {
        Limit &l = limits[i];
        l.wish = &wishes[i];
        l.index = i;
        Result<LockFile> head = LockFile::open(wishes[i].place, FileKind::slots, mode);
        if (!head) return head.status();
        l.head = std::move(*head);
        if (::fstat(l.head.fd(), &l.st) != 0)
            return fail_errno(Code::io_error, "cannot examine lock file " + l.head.path(), errno);
    }
    const auto key = [](const Limit &l) { return std::pair{l.st.st_dev, l.st.st_ino}; };
    std::sort(limits.begin(), limits.end(), [&](const Limit &a, const Limit &b) { return key(a) < key(b); });
    for (std::size_t i = 1; i < limits.size(); ++i)
        if (key(limits[i - 1]) == key(limits[i]))
            return fail(Code::invalid, "the limit " + limits[i].head.path() + " was named twice");
    return limits;
}

// True: all guards are taken. False: another program has locked a whole file.
Result<bool> take_guards(Limits &limits, const Deadline &until) {
    for (Limit &l : limits) {
        const std::int64_t start = l.head.first_locked(guard_byte, 1);
        if (start >= 0 && start < guard_byte) {
            Result<bool> free = l.head.lock(guard_byte, 1, false, until);
            if (!free || !*free) return free;
            l.head.unlock(guard_byte, 1);
        }
        Result<Guard> guard = Guard::take(l.head);
        if (!guard) return guard.status();
        l.guard = std::make_unique<Guard>(std::move(*guard));
    }
    return true;
}

void undo(Limits &limits) {
    for (Limit &l : limits) {
        if (l.number >= 0) l.table->give_back(l.number, l.locked());
        l.number = -1;
        l.shard = LockFile();
        l.table.reset();
        l.guard.reset();
    }
}

// Under all guards: takes a slot of each limit. If one cannot be had, the caller gives the others back.
Result<Attempt> take_each(Limits &limits, const SlotHolder &holder, unsigned mode) {
    Attempt attempt;
    for (std::size_t i = 0; i < limits.size(); ++i) {
        Limit &l = limits[i];
        if (Status s = l.head.make_whole(); !s) return s;
        DCS_REQUIRE(l.guard != nullptr, "states are read and written under the guard");
        l.table = std::make_unique<SlotTable>(l.wish->place, l.head);
        if (Status s = l.table->load(true); !s) return s;
        attempt.others_wait = !l.owns_turn && has_waiters(l.head);
        Result<int> number = attempt.others_wait ? Result<int>(-1) : l.table->take(l.wish->limit, &l.shard, mode);
        if (!number) return number.status();
        l.number = *number;
        if (l.number < 0) {
            attempt.busy = static_cast<int>(i);
            failpoint("locks.slots.before_list");
            attempt.holders = l.table->holders(true);
            attempt.changed = attempt.holders.size() < static_cast<std::size_t>(l.table->held());
            return attempt;
        }
        SlotHolder mine = holder;
        mine.number = l.number;
        if (Status s = write_holder(l.locked(), mine); !s) return s;
    }
    return attempt;
}

// If the process in the record is gone: one that has the slot by now, or pid 0.
void find_holder(const Place &place, SlotHolder &holder) {
    if (!holder.held || (!holder.left && ProcessHandle::open(holder.owner.process))) return;
    holder.owner.process = ProcessIdentity{};
    Result<LockFile> file = LockFile::look(shard_place(place, holder.number / slots_per_file));
    if (!file) return;
    const auto owners = owners_of_lock(this_world(), *file, slot_byte + holder.number % slots_per_file);
    if (!owners.empty()) holder.owner = owners.front();
}

Status full(const Limit &l, const Attempt &attempt) {
    DCS_REQUIRE(l.wish->limit > 0, "a limit of 0 was refused before");
    std::string text = attempt.others_wait ? "earlier requests are waiting for a slot of " + l.head.path()
                                           : (l.wish->limit == 1 ? "the one slot of " + l.head.path() + " is held"
                                                                 : "all " + std::to_string(l.wish->limit) +
                                                                       " slots of " + l.head.path() + " are held");
    std::size_t named = 0;
    for (SlotHolder h : attempt.holders) {
        if (h.owner.process.pid <= 0 || named == named_max) continue;
        find_holder(l.wish->place, h);
        text += (named++ == 0 ? ", by process " : ", ") + std::to_string(h.owner.process.pid);
        if (!h.owner.command.empty()) text += " (" + h.owner.command + ")";
    }
    if (attempt.holders.size() > named && named > 0)
        text += " and " + std::to_string(attempt.holders.size() - named) + " more";
    return fail(Code::limit, text);
}

Status foreign_lock() {
    return fail(Code::limit, "a program that uses fcntl(2) has locked the whole file of the slots");
}

}  // namespace

Slots::Slots(Slots &&other) noexcept : taken_(std::move(other.taken_)) { other.taken_.clear(); }

Slots &Slots::operator=(Slots &&other) noexcept {
    if (this != &other) {
        abandon();
        taken_ = std::move(other.taken_);
        other.taken_.clear();
    }
    return *this;
}

Slots::~Slots() { abandon(); }

void Slots::abandon() {
    for (Taken &t : taken_) {
        SlotHolder holder = read_holder(t.locked(), t.number);
        if (holder.owner.process == own_identity()) {
            holder.left = true;
            (void)write_holder(t.locked(), holder);
        }
        t.shard = LockFile();
        t.head = LockFile();
        Bell::ring(t.place);
    }
    taken_.clear();
}

void Slots::release() {
    for (Taken &t : taken_) {
        DCS_REQUIRE(t.head.is_open(), "a slot that is held has its file");
        SlotTable table(t.place, t.head);
        // Without the guard the hint stays set; the next process that finds the slot free corrects it.
        if (const Result<Guard> guard = Guard::take(t.head)) table.give_back(t.number, t.locked());
        else t.locked().unlock(slot_byte + t.number % slots_per_file, 1);
        failpoint("locks.slots.before_bell");
        if (has_waiters(t.head)) Bell::ring(t.place);
    }
    taken_.clear();
}

std::vector<int> Slots::numbers() const {
    std::vector<int> numbers;
    for (const Taken &t : taken_) numbers.push_back(t.number);
    return numbers;
}

std::vector<int> Slots::lock_fds() const {
    std::vector<int> fds;
    for (const Taken &t : taken_) fds.push_back(t.locked().fd());
    return fds;
}

void Slots::set_owner(const World &world, const Owner &owner, const std::string &note) {
    const Moment now = world.now();
    for (const Taken &t : taken_) {
        SlotHolder holder = read_holder(t.locked(), t.number);
        holder.owner = owner;
        holder.left = false;
        if (!note.empty()) {
            holder.note = note;
            holder.since_wall = now.wall;
            holder.since_mono = now.mono;
        }
        (void)write_holder(t.locked(), holder);  // on failure the previous entry stays
    }
}

namespace {

class Taker {
public:
    Taker(const World &world, const std::vector<SlotWish> &wishes, const Deadline &until, const std::string &note,
          unsigned mode)
        : wishes_(wishes), until_(until), mode_(mode) {
        holder_.owner = this_process(world);
        const Moment now = world.now();
        holder_.since_wall = now.wall;
        holder_.since_mono = now.mono;
        holder_.note = note;
    }
    Result<Limits> run();

private:
    Result<Attempt> attempt(Limits &limits);
    // Waits in the queue of limit `at` until the slots are granted (-1) or another limit has to be waited for.
    Result<int> queue_at(Limits &limits, int at);
    Status late(const Limit &l, const Attempt &attempt) const;

    const std::vector<SlotWish> &wishes_;
    const Deadline until_;
    const unsigned mode_;
    SlotHolder holder_;
};

Result<Attempt> Taker::attempt(Limits &limits) {
    for (int tries = 0; tries < shard_tries; ++tries) {
        Result<bool> ours = take_guards(limits, until_);
        if (!ours || !*ours) {
            undo(limits);
            return ours ? foreign_lock() : ours.status();
        }
        const auto named = [](const Limit &l) { return l.head.still_named(); };
        if (std::all_of(limits.begin(), limits.end(), named)) {
            Result<Attempt> made = take_each(limits, holder_, mode_);
            if (!made || made->busy >= 0) undo(limits);
            for (Limit &l : limits) l.guard.reset();
            return made;
        }
        undo(limits);
        std::vector<bool> turns(limits.size());
        for (const Limit &l : limits) turns[l.index] = l.owns_turn;
        Result<Limits> fresh = open_limits(wishes_, mode_);
        if (!fresh) return fresh.status();
        limits = std::move(*fresh);
        for (Limit &l : limits) l.owns_turn = turns[l.index];
    }
    return fail(Code::io_error, "a file of counted slots is being replaced continually");
}

Status Taker::late(const Limit &l, const Attempt &attempt) const {
    Status s = full(l, attempt);
    s.text += "; the waiting time is over";
    return s;
}

Result<int> Taker::queue_at(Limits &limits, int at) {
    Limit *l = &limits[static_cast<std::size_t>(at)];
    const std::size_t index = l->index;
    const Place place = l->wish->place;
    Result<Bell> bell = Bell::open(place, mode_);
    if (!bell) return bell.status();
    Result<LockFile> queue = LockFile::open(place, FileKind::slots, mode_);
    if (!queue) return queue.status();
    Result<QueuePlace> turn = QueuePlace::enter(*queue, false);
    if (!turn) return turn.status();
    Result<bool> first = turn->wait_for_turn(until_);
    if (!first) return first.status();
    Attempt last{.others_wait = true};
    if (!*first) return late(*l, last);
    l->owns_turn = true;
    for (;;) {
        Result<Attempt> made = attempt(limits);
        if (!made) return made.status();
        const auto own = std::find_if(limits.begin(), limits.end(), [&](const Limit &x) { return x.index == index; });
        DCS_REQUIRE(own != limits.end(), "each wish has a limit");
        if (made->busy < 0 || made->busy != own - limits.begin()) {
            own->owns_turn = false;
            return made->busy;
        }
        if (made->changed && !planted("locks.slots_death_unseen")) continue;
        Result<bool> changed = wait_for_change(*bell, place, made->holders, until_);
        if (!changed) return changed.status();
        if (!*changed) return late(*own, *made);
    }
}

Result<Limits> Taker::run() {
    Result<Limits> limits = open_limits(wishes_, mode_);
    if (!limits) return limits;
    Result<Attempt> made = attempt(*limits);
    if (!made) return made.status();
    int busy = made->busy;
    if (busy >= 0 && until_.boot == 0) return full((*limits)[static_cast<std::size_t>(busy)], *made);
    while (busy >= 0) {
        Result<int> next = queue_at(*limits, busy);
        if (!next) return next.status();
        busy = *next;
    }
    return limits;
}

}  // namespace

Result<Slots> Slots::take(const World &world, const std::vector<SlotWish> &wishes, const Deadline &until,
                          const std::string &note, unsigned mode) {
    if (Status s = check(wishes); !s) return s;
    Result<Limits> limits = Taker(world, wishes, until, note, mode).run();
    if (!limits) return limits.status();
    Slots slots;
    slots.taken_.resize(wishes.size());
    for (Limit &l : *limits) {
        DCS_REQUIRE(l.number >= 0 && l.index < slots.taken_.size(), "a slot of each limit, or of none");
        Taken &t = slots.taken_[l.index];
        t.place = l.wish->place;
        t.number = l.number;
        t.head = std::move(l.head);
        t.shard = std::move(l.shard);
    }
    return slots;
}

Result<std::vector<SlotHolder>> slot_holders(const Place &place) {
    Result<LockFile> head = LockFile::look(place);
    if (!head) return head.status();
    SlotTable table(place, *head);
    if (Status s = table.load(false); !s) return s;
    std::vector<SlotHolder> holders = table.holders(false);
    for (SlotHolder &holder : holders) find_holder(place, holder);
    return holders;
}

}  // namespace dcs::locks
