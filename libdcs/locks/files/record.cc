#include "locks/files/record.h"

#include <algorithm>
#include <cerrno>
#include <unistd.h>

#include "base/files.h"
#include "locks/files/block.h"

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

template <class Io, class Fields> void owner_fields(Io &io, Fields &o) {
    process_fields(io, o.process);
    process_fields(io, o.supervisor);
    io(o.group, o.session, o.uid);
    io.raw(o.boot);
    io(o.pid_namespace, o.cookie);
    io.text(o.host, host_max);
    io.whole_text(o.cgroup, cgroup_max);
    io.text(o.command, command_max);
}

template <class Io, class Fields> void record_fields(Io &io, Fields &r) {
    io(r.generation, r.outcome);
    owner_fields(io, r.owner);
    io(r.started.wall, r.started.mono, r.started.boot);
    io.raw(r.started_boot);
    // `ended` and `last_start` are of one boot; their monotonic part is not needed and is omitted.
    io(r.ended.wall, r.ended.boot, r.last_start.wall, r.last_start.boot);
    io.raw(r.ended_boot);
    io(r.if_elapsed, r.expire_after, r.expired_in_row, r.expired_since_wall);
    // Counters are stored in 32 bits; they are for people only.
    io.in_32_bits(r.grants, r.expiries, r.crashes, r.samples);
    io(r.burst_factor);
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
        if (!block.sealed() || block.get(4) != record_version) continue;
        const std::uint64_t number = block.get(8);
        // The later one in serial-number arithmetic, because a stored number may be the highest possible.
        if (found && static_cast<std::int64_t>(number - sequence) <= 0) continue;
        found = true;
        sequence = number;
        best = block;
    }
    if (damaged != nullptr) {
        *damaged = !found && std::any_of(bytes, bytes + sizeof bytes, [](unsigned char c) { return c != 0; });
    }
    Record record;
    Reading<record_bytes> in{best};
    if (found) record_fields(in, record);
    if (record.outcome > Outcome::lost) record.outcome = Outcome::lost;
    record.sequence = sequence;
    return record;
}

Status write_record(const LockFile &file, Record &record) {
    RecordBlock block;
    block.put(record_version, 4);
    block.put(record.sequence + 1, 8);
    Writing<record_bytes> out{block};
    record_fields(out, record);
    if (!block.write_sealed(file.fd(), place_of(record.sequence + 1)))
        return file_error("cannot write the record of lock " + file.path(), errno);
    ++record.sequence;
    return Status::ok();
}

}  // namespace dcs::locks
