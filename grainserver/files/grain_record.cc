#include "grainserver/files/grain_record.h"

#include <charconv>
#include <cerrno>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/files.h"
#include "base/planted.h"
#include "base/require.h"
#include "grainserver/files/sealed.h"
#include "wire/archives.h"

namespace dcs::files {

constexpr Ending last_of(Ending) { return Ending::overrun; }

// clang-format off
template <class A> void serialize(A &a, FileRecord &x, unsigned) {
    a & DCS_FIELD(role) & DCS_FIELD(name) & DCS_FIELD(digest) & DCS_FIELD(binary_class) & DCS_FIELD(size);
}
template <class A> void serialize(A &a, Account &x, unsigned) {
    a & DCS_FIELD(change) & DCS_FIELD(made_up) & DCS_FIELD(uid) & DCS_FIELD(gid) & DCS_FIELD(groups);
}
template <class A> void serialize(A &a, Limits &x, unsigned) {
    a & DCS_FIELD(memory_mb) & DCS_FIELD(processes) & DCS_FIELD(cpu_s) & DCS_FIELD(disk_mb) & DCS_FIELD(file_mb);
}
// Release 0.1 stored only these two demands here; memory is among the limits. Later ones have numbers.
template <class A> void list_of_launch_record_8(A &a, LaunchRecord &x) {
    a & DCS_FIELD(boot_id) & DCS_FIELD(program) & DCS_FIELD(argv) & DCS_FIELD(env) & DCS_FIELD(directory)
      & DCS_FIELD(checkpoint_length) & DCS_FIELD(input_base) & DCS_FIELD(next_seq) & DCS_FIELD(demands.notice)
      & DCS_FIELD(epoch) & DCS_FIELD(demands.wall_s) & DCS_FIELD(tentative) & DCS_FIELD(account) & DCS_FIELD(limits)
      & DCS_FIELD(runner) & DCS_FIELD(files) & DCS_FIELD(placed) & DCS_FIELD(rungs) & DCS_FIELD(writable);
}
template <class A> void serialize(A &a, LaunchRecord &x, unsigned) {
    if (wire::positional(a)) return list_of_launch_record_8(a, x);
    a & DCS_FIELD(boot_id) & DCS_FIELD(program) & DCS_FIELD(argv) & DCS_FIELD(env) & DCS_FIELD(directory)
      & DCS_FIELD(checkpoint_length) & DCS_FIELD(input_base) & DCS_FIELD(next_seq) & DCS_FIELD(demands)
      & DCS_FIELD(epoch) & DCS_FIELD(tentative) & DCS_FIELD(account) & DCS_FIELD(limits) & DCS_FIELD(runner)
      & DCS_FIELD(files) & DCS_FIELD(placed) & DCS_FIELD(rungs) & DCS_FIELD(writable)
      & wire::since<9>(DCS_FIELD(offers));
}
template <class A> void serialize(A &a, ExitRecord &x, unsigned) {
    a & DCS_FIELD(known) & DCS_FIELD(status) & DCS_FIELD(innocent) & DCS_FIELD(reason) & DCS_FIELD(limit_signal)
      & DCS_FIELD(user_us) & DCS_FIELD(system_us) & DCS_FIELD(max_rss_kb) & DCS_FIELD(minor_faults)
      & DCS_FIELD(major_faults) & DCS_FIELD(in_blocks) & DCS_FIELD(out_blocks);
}
template <class A> void serialize(A &a, EndingRecord &x, unsigned) {
    a & DCS_FIELD(kind) & DCS_FIELD(reason) & DCS_FIELD(limit_signal) & DCS_FIELD(given_back);
}
template <class A> void serialize(A &a, OutputsRecord &x, unsigned) { a & DCS_FIELD(files) & DCS_FIELD(words); }
// clang-format on

namespace {
// In the format of release 0.1, whose launcher may still run; newer fields follow.
template <class Record> std::string packed(const char *kind, const Record &record) {
    return seal(kind, wire::Writer::stored(record));
}

Status damaged(const char *kind) { return fail(Code::io_error, std::string("record ") + kind + " is damaged"); }
template <class Record> Result<Record> unpacked(const char *kind, std::string_view bytes) {
    const Result<std::string_view> fields = unseal(kind, bytes);
    if (!fields) return fields.status();
    Record record;
    if (!wire::Reader::stored(*fields, record)) return damaged(kind);
    return record;
}

std::string numbered(const char *prefix, std::uint32_t n) { return prefix + std::to_string(n); }
}  // namespace

std::string out_name(std::uint32_t sequence) { return numbered("out.", sequence); }
std::string err_name(std::uint32_t sequence) { return numbered("err.", sequence); }
std::string checkpoint_name(std::uint32_t sequence) { return numbered("checkpoint.", sequence); }

const FileRecord *image_of(const std::vector<FileRecord> &files) {
    for (const FileRecord &file : files)
        if (file.role == wire::FileRole::image) return &file;
    return nullptr;
}

std::string pack(const LaunchRecord &x) { return packed("DGL5", x); }
Result<LaunchRecord> unpack_launch(std::string_view bytes) { return unpacked<LaunchRecord>("DGL5", bytes); }

std::size_t format_pid(char *buffer, std::size_t size, pid_t pid, std::uint64_t start_time,
                       const char *boot_id) noexcept {
    char *at = buffer, *const end = buffer + size;
    auto number = [&](auto value) {
        const auto [stop, error] = std::to_chars(at, end, value);
        if (error != std::errc{}) return false;
        at = stop;
        return true;
    };
    auto put = [&](char c) { return at < end && (*at++ = c, true); };
    if (!number(static_cast<long>(pid)) || !put(' ') || !number(start_time) || !put(' ')) return 0;
    for (; *boot_id != 0; ++boot_id)
        if (!put(*boot_id)) return 0;
    return put('\n') ? static_cast<std::size_t>(at - buffer) : 0;
}

Result<PidRecord> parse_pid(std::string_view text) {
    PidRecord x;
    const char *end = text.data() + text.size();
    const auto [first, error] = std::from_chars(text.data(), end, x.pid);
    if (error != std::errc{} || first == end || *first != ' ') return damaged("pid");
    const auto [second, error2] = std::from_chars(first + 1, end, x.start_time);
    if (error2 != std::errc{} || second == end || *second != ' ' || end[-1] != '\n') return damaged("pid");
    x.boot_id.assign(second + 1, end - 1);
    if (x.pid <= 1) return damaged("pid");
    return x;
}

std::string pack(const ExitRecord &x) { return packed("DGE2", x); }
Result<ExitRecord> unpack_exit(std::string_view bytes) { return unpacked<ExitRecord>("DGE2", bytes); }

std::string pack(const EndingRecord &x) { return packed("DGW3", x); }
Result<EndingRecord> unpack_ending(std::string_view bytes) { return unpacked<EndingRecord>("DGW3", bytes); }

std::string pack(const OutputsRecord &x) { return packed("DGO1", x); }
Result<OutputsRecord> unpack_outputs(std::string_view bytes) { return unpacked<OutputsRecord>("DGO1", bytes); }

std::string pack_acked(std::uint32_t sequence) {
    ByteWriter w;
    w.u32(sequence);
    return seal("DGA1", w.bytes());
}
Result<std::uint32_t> unpack_acked(std::string_view bytes) {
    const Result<std::string_view> fields = unseal("DGA1", bytes);
    if (!fields) return fields.status();
    ByteReader r(*fields);
    const std::uint32_t sequence = r.u32();
    if (!r.at_end()) return damaged("DGA1");
    return sequence;
}

bool is_record(std::string_view bytes) { return !bytes.empty() && bytes.front() != 0; }

bool has_record(int directory, const std::string &name) {
    const Fd fd(::openat(directory, name.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY));
    if (!fd) return errno != ENOENT && file_exists(directory, name);
    char first = 0;
    const ssize_t n = ::pread(fd.get(), &first, 1, 0);
    return n < 0 || (n == 1 && first != 0);  // what is no file has no place to read from
}

Result<std::string> read_record(int directory, const std::string &name) {
    const Fd fd(::openat(directory, name.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY));
    char bytes[16384];
    if (!fd) return file_error(name, errno);
    const ssize_t n = ::pread(fd.get(), bytes, sizeof bytes, 0);
    if (n >= 0 && static_cast<std::size_t>(n) < sizeof bytes) return std::string(bytes, static_cast<std::size_t>(n));
    return read_open(fd.get(), name, record_bytes_max, false);
}

// Cut first, the first byte last: until that one is there, nothing is.
int put_record(int fd, const char *bytes, std::size_t size) noexcept {
    struct stat st {};
    if (::fstat(fd, &st) != 0) return errno;
    if (st.st_size > static_cast<off_t>(size) && ::ftruncate(fd, static_cast<off_t>(size)) != 0) return errno;
    const std::size_t from = planted("files.record_in_parts") ? 0 : 1;
    errno = ENOSPC;  // a short write
    if (::pwrite(fd, bytes + from, size - from, static_cast<off_t>(from)) != static_cast<ssize_t>(size - from) ||
        ::pwrite(fd, bytes, 1, 0) != 1) {
        const int error = errno;
        return ::ftruncate(fd, 0) != 0 ? errno : error;
    }
    return 0;
}

Status write_record(int directory, const std::string &name, std::string_view bytes) {
    DCS_REQUIRE(is_record(bytes), "a record begins with its kind");
    const Fd fd(::openat(directory, name.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!fd) return file_error(name, errno);
    const int error = put_record(fd.get(), bytes.data(), bytes.size());
    return error == 0 ? Status::ok() : file_error(name, error);
}

Status reserve_record(int directory, const std::string &name) {
    const Fd fd(::openat(directory, name.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
    return fd && ::pwrite(fd.get(), "", 1, 0) == 1 ? Status::ok() : file_error(name, errno);
}

bool void_record(int directory, const std::string &name) {
    const Fd fd(::openat(directory, name.c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW));
    return fd && ::pwrite(fd.get(), "", 1, 0) == 1;
}

}  // namespace dcs::files
