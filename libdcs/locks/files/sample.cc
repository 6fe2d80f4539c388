#include "locks/files/sample.h"

#include <algorithm>
#include <cerrno>
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
        const std::uint64_t number = entry.u32();
        found.push_back({number, entry});
    }
    std::sort(found.begin(), found.end(), [](const Numbered &a, const Numbered &b) { return a.number < b.number; });
    return found;
}

Status write_entry(const LockFile &file, std::int64_t at, std::size_t kept, std::uint64_t number, Entry &entry) {
    entry.seal();
    const auto place = static_cast<std::int64_t>(number % kept * entry_bytes);
    if (::pwrite(file.fd(), entry.data(), entry.size(), at + place) == static_cast<ssize_t>(entry.size()))
        return Status::ok();
    return file_error("cannot write to lock " + file.path(), errno);
}

}  // namespace

Status write_sample(const LockFile &file, std::uint64_t number, const Sample &sample) {
    Entry e;
    e.u32(static_cast<std::uint32_t>(number));
    e.u8(static_cast<std::uint8_t>(sample.outcome));
    e.u8(sample.progressing ? 1 : 0);
    e.i64(sample.wall);
    e.i64(sample.runtime);
    e.i64(sample.cpu);
    e.i64(sample.io);
    e.i64(sample.waited);
    e.i64(sample.limit);
    return write_entry(file, samples_at, samples_kept, number, e);
}

std::vector<Sample> read_samples(const LockFile &file) {
    std::vector<Sample> samples;
    for (Numbered &n : read_ring(file, samples_at, samples_kept)) {
        Sample s;
        const std::uint8_t outcome = n.entry.u8();
        if (outcome > static_cast<std::uint8_t>(Outcome::lost)) continue;
        s.outcome = static_cast<Outcome>(outcome);
        s.progressing = n.entry.u8() != 0;
        s.wall = n.entry.i64();
        s.runtime = n.entry.i64();
        s.cpu = n.entry.i64();
        s.io = n.entry.i64();
        s.waited = n.entry.i64();
        s.limit = n.entry.i64();
        samples.push_back(s);
    }
    return samples;
}

void note_denial(const LockFile &file, const Denial &denial) {
    if (!file.keeps_records()) return;
    const Result<Guard> guard = Guard::take(file);
    if (!guard) return;
    const std::vector<Numbered> ring = read_ring(file, refusals_at, refusals_kept);
    const std::uint64_t number = ring.empty() ? 0 : ring.back().number + 1;
    Entry e;
    e.u32(static_cast<std::uint32_t>(number));
    e.u8(denial.too_soon ? 1 : 0);
    e.i64(denial.wall);
    e.u32(denial.uid);
    e.u32(static_cast<std::uint32_t>(denial.pid));
    e.u32(static_cast<std::uint32_t>(denial.parent));
    e.text(denial.command, asker_max);
    (void)write_entry(file, refusals_at, refusals_kept, number, e);  // a hint: the refusal is valid without it
}

std::vector<Denial> read_denials(const LockFile &file) {
    std::vector<Denial> denials;
    for (Numbered &n : read_ring(file, refusals_at, refusals_kept)) {
        Denial d;
        d.too_soon = n.entry.u8() != 0;
        d.wall = n.entry.i64();
        d.uid = n.entry.u32();
        d.pid = static_cast<pid_t>(n.entry.u32());
        d.parent = static_cast<pid_t>(n.entry.u32());
        d.command = n.entry.text(asker_max);
        denials.push_back(d);
    }
    return denials;
}

}  // namespace dcs::locks
