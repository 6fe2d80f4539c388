// A lock file that any peer wrote into: its header, its records, its samples and refusals; and names of atoms.
#include "locks/files/lock_file.h"

#include <sys/mman.h>
#include <unistd.h>

#include "fuzz.h"
#include "locks/files/block.h"
#include "locks/files/lock_header.h"
#include "locks/files/record.h"
#include "locks/files/run_log.h"

namespace dcs::fuzz {
namespace {

// Places of the file that have a meaning, and how long a sealed block is there (0: none).
struct Part {
    std::int64_t at;
    std::size_t block;
};
constexpr Part parts[] = {{locks::header_at, 0},   {locks::record_a_at, 512},          {locks::record_b_at, 512},
                          {locks::samples_at, 64}, {locks::samples_at + 127 * 64, 64}, {locks::refusals_at, 64},
                          {locks::counter_at, 64}, {locks::long_names_at, 0},          {locks::waiters_at, 64},
                          {locks::slots_at, 256}};

void seal(std::string &block, std::size_t size) {
    block.resize(size);
    const std::uint64_t sum = locks::block_sum(reinterpret_cast<const unsigned char *>(block.data()), size - 8);
    for (std::size_t i = 0; i < 8; ++i) block[size - 8 + i] = static_cast<char>(sum >> (8 * i));
}

void read_name(const std::string &text) {
    if (const auto atom = locks::decoded_name(text)) {
        const auto again = locks::decoded_name(locks::full_name(*atom));
        expect(again && *again == *atom, "the name of an atom is read back as it was");
    }
    const locks::Atom atom{text, text, "h"};
    if (const auto name = locks::encoded_name(atom)) {
        expect(name->find('/') == std::string::npos && name->size() <= 200 && (*name)[0] != '.',
               "a name is one of a file");
        const auto back = locks::decoded_name(locks::full_name(atom));
        expect(back && *back == atom, "and says what it is of");
    }
}

void read_all(int fd) {
    locks::Atom atom;
    for (const bool adopt : {false, true}) (void)locks::recognise(fd, adopt, &atom);
    const locks::LockFile file = locks::LockFile::around(fd);
    bool damaged = false;
    locks::Record record = locks::read_record(file, &damaged);
    expect(record.owner.host.size() <= 48 && record.owner.command.size() <= 48 && record.owner.cgroup.size() <= 120,
           "texts keep their lengths");
    expect(locks::outcome_name(record.outcome) != nullptr, "an outcome has a name");
    (void)locks::read_samples(file);
    (void)locks::read_denials(file);
    locks::Place place;
    place.path = "/lock/h,edit,motd.lock", place.atom = {"edit", "motd", "h"}, place.named = true;
    locks::FileKind kind = locks::FileKind::foreign;
    (void)locks::judge(fd, place, locks::FileKind::atom, &kind);
    const std::uint64_t before = record.sequence;
    expect(static_cast<bool>(locks::write_record(file, record)), "a record can be written over whatever was there");
    const locks::Record again = locks::read_record(file, &damaged);
    expect(!damaged && again.sequence == record.sequence && record.sequence == before + 1,
           "and is the one that counts then");
}

// A line of the run log, which each peer may write into who may take the lock.
void read_line(const std::string &text) {
    locks::LogLine line, again;
    if (!locks::parse_log_line(text, line) || text.size() > 900) return;  // longer ones are cut
    expect(locks::parse_log_line(locks::printed(line), again), "a line that was read is one when it is printed");
    expect(again.name == line.name && again.event == line.event && again.pid == line.pid &&
               again.generation == line.generation && again.text == line.text,
           "and says the same");
    expect(locks::printed(again) == locks::printed(line), "however often");
}

}  // namespace

void run(std::string_view bytes) {
    static const int fd = ::memfd_create("lock", MFD_CLOEXEC);
    expect(fd >= 0 && ::ftruncate(fd, 0) == 0, "there is a file to work in");
    Choices input(bytes);
    for (int n = 0; n < 12 && !input.empty(); ++n) {
        const std::uint8_t what = input.byte();
        std::string piece(input.piece());
        if (what == 0x7f) {
            read_name(piece);
            continue;
        }
        if (what == 0x7e) {
            read_line(piece);
            continue;
        }
        const Part &part = parts[(what & 0x7f) % std::size(parts)];
        if ((what & 0x80) != 0 && part.block != 0) seal(piece, part.block);
        expect(::pwrite(fd, piece.data(), piece.size(), part.at) == static_cast<ssize_t>(piece.size()),
               "it takes what is written");
    }
    read_all(fd);
}

namespace {

std::string content(int fd, const Part &part, std::size_t length) {
    std::string bytes(length, '\0');
    expect(::pread(fd, bytes.data(), length, part.at) >= 0, "what was written is read");
    return bytes;
}

}  // namespace

std::vector<Seed> seeds() {
    const int fd = ::memfd_create("seed", MFD_CLOEXEC);
    expect(locks::write_header(fd, locks::FileKind::atom, {"edit", "motd", "h"}) == 0, "a header is written");
    const locks::LockFile file = locks::LockFile::around(fd);
    locks::Record record;
    record.outcome = locks::Outcome::expired, record.owner.command = "vi", record.owner.host = "h", record.samples = 1;
    record.owner.process = {4711, 99, 12};
    expect(locks::write_record(file, record) && locks::write_record(file, record), "two records are written");
    locks::Sample sample;
    sample.wall = 7, sample.runtime = 8, sample.outcome = locks::Outcome::done;
    expect(static_cast<bool>(locks::write_sample(file, 0, sample)), "a sample is written");
    locks::note_denial(file, {1, true, 2, 3, 4, "cron"});
    std::string raw, sealed;
    for (std::size_t i = 0; i < std::size(parts); ++i) {
        if (parts[i].block == 0 && i != 0) continue;
        const std::string part = piece_of(content(fd, parts[i], i == 0 ? 512 : parts[i].block));
        raw += static_cast<char>(i) + part;
        sealed += static_cast<char>(i | 0x80) + part;
    }
    const std::string long_name = "h,edit," + std::string(600, 'x');
    const std::string header = "dcs_lock 1 slots\nname " + std::to_string(long_name.size()) + "\n\n";
    ::close(fd);
    return {
        {"raw", raw},
        {"sealed", sealed},
        {"line", '\x7e' + piece_of("2026-11-21T22:10:03.123456789Z host,edit,%2Fetc%2Fmotd expired pid=12 uid=0 gen=7 "
                                   "run=12.5 cpu=0.1 io=4096 wait=0 limit=5400 : hung\\x0a twice")},
        {"name", '\x7f' + piece_of("h,edit,%2Fetc%2Fmotd")},
        {"long-name", '\0' + piece_of(header + std::string(512 - header.size(), '\0')) + '\7' + piece_of(long_name)}};
}

}  // namespace dcs::fuzz
