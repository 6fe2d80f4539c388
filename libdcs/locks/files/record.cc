#include "locks/files/record.h"

#include <algorithm>
#include <cerrno>
#include <unistd.h>

#include "base/files.h"
#include "locks/files/identity_block.h"

namespace dcs::locks {

std::uint64_t block_sum(const unsigned char *data, std::size_t bytes) {
    std::uint64_t sum = 0xcbf29ce484222325ULL;
    for (std::size_t i = 0; i < bytes; i += 8) {
        std::uint64_t word = 0;
        std::memcpy(&word, data + i, 8);
        sum = (sum ^ little_endian(word)) * 0x100000001b3ULL;
        sum ^= sum >> 32;  // carries the high bytes of a word into the low bytes of the sum
    }
    return sum == 0 ? 1 : sum;
}

namespace {

using RecordBlock = Block<record_bytes>;
constexpr std::uint32_t record_version = 1;
constexpr std::size_t host_max = 48, cgroup_max = 120, command_max = 48;

void put(RecordBlock &b, const Moment &m) {
    b.i64(m.wall);
    b.i64(m.mono);
    b.i64(m.boot);
}

Moment get_moment(RecordBlock &b) {
    Moment m;
    m.wall = b.i64();
    m.mono = b.i64();
    m.boot = b.i64();
    return m;
}

void put(RecordBlock &b, const Owner &o) {
    put(b, o.process);
    put(b, o.supervisor);
    b.u32(static_cast<std::uint32_t>(o.group));
    b.u32(static_cast<std::uint32_t>(o.session));
    b.u32(o.uid);
    b.raw(o.boot.data(), o.boot.size());
    b.u64(o.pid_namespace);
    b.u64(o.cookie);
    b.text(o.host, host_max);
    b.text(o.cgroup.size() <= cgroup_max ? o.cgroup : std::string(), cgroup_max);
    b.text(o.command, command_max);
}

Owner get_owner(RecordBlock &b) {
    Owner o;
    o.process = get_process(b);
    o.supervisor = get_process(b);
    o.group = static_cast<pid_t>(b.u32());
    o.session = static_cast<pid_t>(b.u32());
    o.uid = b.u32();
    b.raw(o.boot.data(), o.boot.size());
    o.pid_namespace = b.u64();
    o.cookie = b.u64();
    o.host = b.text(host_max);
    o.cgroup = b.text(cgroup_max);
    o.command = b.text(command_max);
    return o;
}

void put(RecordBlock &b, const Record &r) {
    b.u64(r.generation);
    b.u8(static_cast<std::uint8_t>(r.outcome));
    put(b, r.owner);
    put(b, r.started);
    b.raw(r.started_boot.data(), r.started_boot.size());
    // `ended` and `last_start` are of one boot; their monotonic part is not needed and is omitted.
    b.i64(r.ended.wall);
    b.i64(r.ended.boot);
    b.i64(r.last_start.wall);
    b.i64(r.last_start.boot);
    b.raw(r.ended_boot.data(), r.ended_boot.size());
    b.i64(r.if_elapsed);
    b.i64(r.expire_after);
    b.u32(r.expired_in_row);
    b.i64(r.expired_since_wall);
    // Counters are stored in 32 bits; they are for people only.
    b.u32(static_cast<std::uint32_t>(r.grants));
    b.u32(static_cast<std::uint32_t>(r.expiries));
    b.u32(static_cast<std::uint32_t>(r.crashes));
    b.u32(static_cast<std::uint32_t>(r.samples));
    b.u32(r.burst_factor);
}

Record get_record(RecordBlock &b) {
    Record r;
    r.generation = b.u64();
    const std::uint8_t outcome = b.u8();
    r.outcome = outcome <= static_cast<std::uint8_t>(Outcome::lost) ? static_cast<Outcome>(outcome) : Outcome::lost;
    r.owner = get_owner(b);
    r.started = get_moment(b);
    b.raw(r.started_boot.data(), r.started_boot.size());
    r.ended.wall = b.i64();
    r.ended.boot = b.i64();
    r.last_start.wall = b.i64();
    r.last_start.boot = b.i64();
    b.raw(r.ended_boot.data(), r.ended_boot.size());
    r.if_elapsed = b.i64();
    r.expire_after = b.i64();
    r.expired_in_row = b.u32();
    r.expired_since_wall = b.i64();
    r.grants = b.u32();
    r.expiries = b.u32();
    r.crashes = b.u32();
    r.samples = b.u32();
    r.burst_factor = b.u32();
    return r;
}

std::int64_t place_of(std::uint64_t sequence) { return sequence % 2 == 0 ? record_a_at : record_b_at; }

}  // namespace

const char *outcome_name(Outcome outcome) {
    switch (outcome) {
    case Outcome::none: return "none";
    case Outcome::running: return "running";
    case Outcome::done: return "done";
    case Outcome::failed: return "failed";
    case Outcome::expired: return "expired";
    case Outcome::crashed: return "crashed";
    case Outcome::lost: return "lost";
    }
    return "lost";
}

Record read_record(const LockFile &file, bool *damaged) {
    static_assert(record_b_at == record_a_at + static_cast<std::int64_t>(record_bytes));
    unsigned char bytes[2 * record_bytes] = {};
    const ssize_t n = ::pread(file.fd(), bytes, sizeof bytes, record_a_at);
    RecordBlock best;
    std::uint64_t sequence = 0;
    bool found = false;
    for (int i = 0; i < 2 && n > 0; ++i) {
        RecordBlock block;
        std::memcpy(block.data(), bytes + static_cast<std::size_t>(i) * record_bytes, record_bytes);
        if (!block.sealed() || block.u32() != record_version) continue;
        const std::uint64_t number = block.u64();
        // The later one in serial-number arithmetic, because a stored number may be the highest possible.
        if (found && static_cast<std::int64_t>(number - sequence) <= 0) continue;
        found = true;
        sequence = number;
        best = block;
    }
    if (damaged != nullptr) {
        *damaged = !found && std::any_of(bytes, bytes + sizeof bytes, [](unsigned char c) { return c != 0; });
    }
    Record record = found ? get_record(best) : Record{};
    record.sequence = sequence;
    return record;
}

Status write_record(const LockFile &file, Record &record) {
    RecordBlock block;
    block.u32(record_version);
    block.u64(record.sequence + 1);
    put(block, record);
    block.seal();
    const ssize_t n = ::pwrite(file.fd(), block.data(), block.size(), place_of(record.sequence + 1));
    if (n == static_cast<ssize_t>(block.size())) {
        ++record.sequence;
        return Status::ok();
    }
    const int error = n < 0 ? errno : ENOSPC;
    return file_error("cannot write the record of lock " + file.path(), error);
}

}  // namespace dcs::locks
