#include "locks/files/slot_table.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <unistd.h>

#include "base/failpoint.h"
#include "base/files.h"
#include "base/planted.h"
#include "base/require.h"
#include "locks/files/block.h"

namespace dcs::locks {
namespace {

constexpr char held_state = '1', free_state = '0';  // they differ in one bit: see count_held()
constexpr std::size_t slot_bytes = 256, slot_host_max = 32, slot_command_max = 40, note_max = 64;
constexpr std::int64_t hints_at = slots_at + slots_per_file * static_cast<std::int64_t>(slot_bytes);
using HintHeader = Block<64>;
constexpr std::int64_t states_at = hints_at + static_cast<std::int64_t>(HintHeader::size());
static_assert(states_at + slots_max <= long_names_at);
constexpr std::uint32_t hint_version = 1;
constexpr int shards_max = slots_max / slots_per_file;
using SlotEntry = Block<slot_bytes>;

Status cannot_write(const LockFile &file, int error) {
    return file_error("cannot write slots of " + file.path(), error);
}

bool write_all(const LockFile &file, const void *bytes, std::size_t size, std::int64_t at) {
    errno = ENOSPC;  // of a write that is short
    return ::pwrite(file.fd(), bytes, size, at) == static_cast<ssize_t>(size);
}

bool write_hint_header(const LockFile &head, std::size_t slots) {
    HintHeader block;
    block.put(hint_version, 4);
    block.put(slots, 4);
    return block.write_sealed(head.fd(), hints_at);
}

// False: damaged, or never written.
bool read_hints(const LockFile &head, std::string &states) {
    // Reads header and states at once; few files have more states.
    char bytes[HintHeader::size() + 4032];
    const ssize_t n = ::pread(head.fd(), bytes, sizeof bytes, hints_at);
    if (n < static_cast<ssize_t>(HintHeader::size())) return false;
    HintHeader block;
    std::memcpy(block.data(), bytes, block.size());
    if (!block.sealed() || block.get(4) != hint_version) return false;
    const std::size_t slots = block.get(4);
    if (slots > slots_max) return false;
    const std::size_t have = std::min(slots, static_cast<std::size_t>(n) - block.size());
    states.assign(bytes + block.size(), have);
    if (have < slots) {
        states.resize(slots);
        const ssize_t rest = static_cast<ssize_t>(slots - have);
        if (::pread(head.fd(), states.data() + have, slots - have, states_at + static_cast<std::int64_t>(have)) != rest)
            return false;
    }
    return true;
}

// Eight states at a time, because it runs for each slot that is taken. -1: one of them is invalid.
int count_held(const std::string &states) {
    constexpr std::uint64_t each = 0x0101010101010101, all_free = each * static_cast<unsigned char>(free_state);
    std::uint64_t held = 0, strange = 0;
    for (std::size_t i = 0; i < states.size(); i += 8) {
        std::uint64_t word = all_free;
        std::memcpy(&word, states.data() + i, std::min<std::size_t>(8, states.size() - i));
        word ^= all_free;
        strange |= word & ~each;
        held += (word & each) * each >> 56;
    }
    return strange != 0 ? -1 : static_cast<int>(held);
}

template <class Io, class Fields> void slot_fields(Io &io, Fields &holder) {
    auto &owner = holder.owner;
    process_fields(io, owner.process);
    process_fields(io, owner.supervisor);
    io(holder.left, owner.uid);
    io.raw(owner.boot);
    io(owner.pid_namespace, holder.since_wall, holder.since_mono);
    io.text(owner.host, slot_host_max);
    io.text(owner.command, slot_command_max);
    io.text(holder.note, note_max);
}

std::int64_t entry_at(int number) {
    DCS_REQUIRE(number >= 0 && number < slots_max, "slots are numbered from 0 on");
    return slots_at + number % slots_per_file * std::int64_t{slot_bytes};
}

}  // namespace

Place shard_place(const Place &head, int shard) {
    Place place = head;
    if (shard == 0) return place;
    const std::string behind = "." + std::to_string(shard);
    place.path += behind;
    place.atom.operation += behind;
    place.one_kind = false;
    place.adopt = true;  // a file with this name beside a head belongs to DCS
    return place;
}

Status write_holder(const LockFile &file, const SlotHolder &holder) {
    if (!file.keeps_records()) return Status::ok();
    SlotEntry entry;
    Writing<slot_bytes> out{entry};
    slot_fields(out, holder);
    return entry.write_sealed(file.fd(), entry_at(holder.number)) ? Status::ok() : cannot_write(file, errno);
}

SlotHolder read_holder(const LockFile &file, int number) {
    SlotHolder holder{.number = number};
    SlotEntry entry;
    if (!file.keeps_records() || !entry.read_sealed(file.fd(), entry_at(number))) return holder;
    Reading<slot_bytes> in{entry};
    slot_fields(in, holder);
    return holder;
}

const LockFile *SlotTable::shard_file(int shard) {
    if (shard == 0) return &head_;
    const auto it = looked_at_.find(shard);
    if (it != looked_at_.end()) return it->second.is_open() ? &it->second : nullptr;
    Result<LockFile> file = LockFile::look(shard_place(place_, shard));
    LockFile &kept = looked_at_[shard];
    if (file) kept = std::move(*file);
    // Ten thousand slots have more shards than a process may have descriptors.
    constexpr std::size_t open_max = 16;
    if (looked_at_.size() > open_max)
        looked_at_.erase(looked_at_.begin()->first == shard ? std::prev(looked_at_.end()) : looked_at_.begin());
    return kept.is_open() ? &kept : nullptr;
}

bool SlotTable::is_locked(int number) {
    if (planted("locks.slots_hints_only")) return false;
    const LockFile *file = shard_file(number / slots_per_file);
    return file != nullptr && file->first_locked(slot_byte + number % slots_per_file, 1) >= 0;
}

Status SlotTable::load(bool may_write) {
    const bool whole = read_hints(head_, states_) || planted("locks.slots_damage_is_empty");
    held_ = whole && head_.keeps_records() ? count_held(states_) : -1;
    if (held_ >= 0) return Status::ok();
    const Status s = rebuild(may_write);
    held_ = count_held(states_);
    return s;
}

Status SlotTable::rebuild(bool may_write) {
    states_.clear();
    const int shards = head_.keeps_records() ? shards_max : 1;
    for (int shard = 0; shard < shards; ++shard) {
        const LockFile *file = shard_file(shard);
        if (file == nullptr || file->first_locked(slot_byte, slots_per_file) < 0) continue;
        for (int i = 0; i < slots_per_file; ++i) {
            if (file->first_locked(slot_byte + i, 1) < 0) continue;
            const int number = shard * slots_per_file + i;
            states_.resize(static_cast<std::size_t>(number), free_state);
            states_.push_back(held_state);
        }
    }
    if (!may_write || !head_.keeps_records()) return Status::ok();
    // The header is invalid while the states are written: a crash here leaves damage, not a wrong count.
    const HintHeader none;
    failpoint("locks.slots.before_rebuild");
    if (!write_all(head_, none.data(), none.size(), hints_at) ||
        !write_all(head_, states_.data(), states_.size(), states_at) || !write_hint_header(head_, states_.size()))
        return cannot_write(head_, errno);
    return Status::ok();
}

// Before a limit counts as full, its held slots are checked: dead holders left their hints. True as soon as fewer than
// `limit` are held.
bool SlotTable::find_dead(int limit) {
    for (std::size_t i = 0; i < states_.size() && held_ >= limit; ++i) {
        const int number = static_cast<int>(i);
        if (states_[i] != held_state || is_locked(number)) continue;
        if (!write_hint(number, free_state)) return false;
        --held_;
    }
    return held_ < limit;
}

bool SlotTable::write_hint(int number, char state) {
    const auto at = static_cast<std::size_t>(number);
    const bool grows = at >= states_.size();
    DCS_REQUIRE(at <= states_.size(), "the states have no gap");
    if (grows) states_.push_back(free_state);
    states_[at] = state;
    if (!head_.keeps_records()) return true;
    return write_all(head_, &state, 1, states_at + number) && (!grows || write_hint_header(head_, states_.size()));
}

Result<int> SlotTable::take(int limit, LockFile *shard, unsigned mode) {
    DCS_REQUIRE(limit > 0 && limit <= slots_max && held_ >= 0, "the limit was checked and the states were loaded");
    while (held_ < limit || find_dead(limit)) {
        const std::size_t first = std::min(states_.find(free_state), states_.size());
        const int number = static_cast<int>(first), in = number / slots_per_file;
        if (number >= slots_max || (in > 0 && !head_.keeps_records()))
            return fail(Code::invalid, head_.path() + " has no room for more slots" +
                                           (head_.keeps_records() ? "" : ", as it is not a file of counted slots"));
        if (in > 0) {
            Result<LockFile> file = LockFile::open(shard_place(place_, in), FileKind::slots, mode);
            if (!file) return file.status();
            if (Status s = file->make_whole(); !s) return s;
            *shard = std::move(*file);
        }
        failpoint("locks.slots.before_hint");
        if (!write_hint(number, held_state)) return cannot_write(head_, errno);
        ++held_;
        failpoint("locks.slots.after_hint");
        const LockFile &file = in > 0 ? *shard : head_;
        Result<bool> got = file.lock(slot_byte + number % slots_per_file, 1, false, Deadline::none());
        failpoint("locks.slots.after_lock");
        if (!got) return got.status();
        if (*got || planted("locks.slots_hints_only")) return number;
        // The hint was free, but the slot is held: it is corrected by now.
    }
    *shard = LockFile();
    return -1;
}

void SlotTable::give_back(int number, const LockFile &file) {
    DCS_REQUIRE(number >= 0 && number < slots_max, "a slot that was taken has a number");
    file.unlock(slot_byte + number % slots_per_file, 1);
    failpoint("locks.slots.after_unlock");
    char state = free_state;
    if (head_.keeps_records()) (void)!::pwrite(head_.fd(), &state, 1, states_at + number);
    if (static_cast<std::size_t>(number) < states_.size() && states_[static_cast<std::size_t>(number)] == held_state) {
        states_[static_cast<std::size_t>(number)] = free_state;
        --held_;
    }
}

std::vector<SlotHolder> SlotTable::holders(bool only_held) {
    std::vector<SlotHolder> found;
    for (std::size_t i = 0; i < states_.size(); ++i) {
        const int number = static_cast<int>(i);
        const LockFile *file = shard_file(number / slots_per_file);
        if (file == nullptr) continue;
        const bool held = is_locked(number);
        if (only_held && !held) continue;
        SlotHolder holder = read_holder(*file, number);
        holder.held = held;
        if (held || holder.since_wall != 0) found.push_back(std::move(holder));
    }
    return found;
}

}  // namespace dcs::locks
