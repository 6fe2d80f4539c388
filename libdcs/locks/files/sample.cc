#include "locks/files/sample.h"

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
