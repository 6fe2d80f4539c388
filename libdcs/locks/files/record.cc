#include "locks/files/record.h"

#include <algorithm>
#include <cerrno>
#include <concepts>

#include <unistd.h>

#include "base/files.h"
#include "locks/files/block.h"

namespace dcs::locks {
namespace {

constexpr std::size_t entry_bytes = 64, asker_max = 19;
using Entry = Block<entry_bytes>;

// The ring of `kept` entries at `at`, sorted by the number in the first field of each.
struct Numbered {
    std::uint64_t number;
    Entry entry;
};

std::vector<Numbered> read_ring(const LockFile &file, std::int64_t at, std::size_t kept) {
    std::vector<unsigned char> bytes(kept * entry_bytes);
    const ssize_t n = ::pread(file.fd(), bytes.data(), bytes.size(), at);
    std::vector<Numbered> found;
    for (std::size_t i = 0; n > 0 && (i + 1) * entry_bytes <= static_cast<std::size_t>(n); ++i) {
        Entry entry;
        std::memcpy(entry.data(), bytes.data() + i * entry_bytes, entry_bytes);
        if (!entry.sealed()) continue;
        const std::uint64_t number = entry.get(4);
        found.push_back({number, entry});
    }
    std::sort(found.begin(), found.end(), [](const Numbered &a, const Numbered &b) { return a.number < b.number; });
    return found;
}

template <class Io, class Fields>
void fields_of(Io &io, Fields &s) requires std::same_as<std::remove_const_t<Fields>, Sample> {
    io(s.outcome, s.progressing, s.wall, s.runtime, s.cpu, s.io, s.waited, s.limit);
}

template <class Io, class Fields>
void fields_of(Io &io, Fields &d) requires std::same_as<std::remove_const_t<Fields>, Denial> {
    io(d.too_soon, d.wall, d.uid, d.pid, d.parent);
    io.text(d.command, asker_max);
}

template <class Row>
Status write_row(const LockFile &file, std::int64_t at, std::size_t kept, std::uint64_t number, const Row &row) {
    Entry entry;
    entry.put(number, 4);
    Writing<entry_bytes> out{entry};
    fields_of(out, row);
    if (entry.write_sealed(file.fd(), at + static_cast<std::int64_t>(number % kept * entry_bytes))) return Status::ok();
    return file_error("cannot write to lock " + file.path(), errno);
}

template <class Row> std::vector<Row> read_rows(const LockFile &file, std::int64_t at, std::size_t kept) {
    std::vector<Row> rows;
    for (Numbered &n : read_ring(file, at, kept)) {
        Reading<entry_bytes> in{n.entry};
        fields_of(in, rows.emplace_back());
    }
    return rows;
}

}  // namespace

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
    constexpr const char *names[] = {"none", "running", "done", "failed", "expired", "crashed", "lost"};
    static_assert(std::size(names) == static_cast<std::size_t>(Outcome::lost) + 1);
    return names[static_cast<std::size_t>(std::min(outcome, Outcome::lost))];
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

Status write_sample(const LockFile &file, std::uint64_t number, const Sample &sample) {
    return write_row(file, samples_at, samples_kept, number, sample);
}

std::vector<Sample> read_samples(const LockFile &file) {
    std::vector<Sample> samples = read_rows<Sample>(file, samples_at, samples_kept);
    std::erase_if(samples, [](const Sample &s) { return s.outcome > Outcome::lost; });
    return samples;
}

void note_denial(const LockFile &file, const Denial &denial) {
    if (!file.keeps_records()) return;
    const Result<Guard> guard = Guard::take(file);
    if (!guard) return;
    const std::vector<Numbered> ring = read_ring(file, refusals_at, refusals_kept);
    const std::uint64_t number = ring.empty() ? 0 : ring.back().number + 1;
    (void)write_row(file, refusals_at, refusals_kept, number, denial);  // a hint: the refusal is valid without it
}

std::vector<Denial> read_denials(const LockFile &file) { return read_rows<Denial>(file, refusals_at, refusals_kept); }

}  // namespace dcs::locks
