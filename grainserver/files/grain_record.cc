#include "grainserver/files/grain_record.h"

#include <algorithm>
#include <charconv>
#include <cstdio>

#include "base/bytes.h"
#include "base/limits.h"
#include "grainserver/files/sealed.h"

namespace dcs::files {
namespace {
void put_files(ByteWriter &w, const std::vector<FileRecord> &files) {
    w.u32(static_cast<std::uint32_t>(files.size()));
    for (const FileRecord &file : files) {
        w.u8(file.role);
        for (const std::string *text : {&file.name, &file.digest, &file.binary_class}) w.text(*text);
        w.u64(file.size);
    }
}
std::vector<FileRecord> get_files(ByteReader &r) {
    const std::uint32_t count = r.u32();
    constexpr std::size_t smallest = 1 + 3 * 4 + 8;
    if (count > r.left() / smallest) r.spoil();
    std::vector<FileRecord> files(r.good() ? count : 0);
    for (FileRecord &file : files) {
        file.role = r.u8();
        if (file.role > last_file_role) r.spoil();
        for (std::string *text : {&file.name, &file.digest, &file.binary_class}) *text = r.text();
        file.size = r.u64();
        if (!r.good()) break;
    }
    return files;
}
Status damaged(const char *kind) { return fail(Code::io_error, std::string("record ") + kind + " is damaged"); }
std::string numbered(const char *prefix, std::uint32_t n) { return prefix + std::to_string(n); }
}  // namespace

std::string out_name(std::uint32_t sequence) { return numbered("out.", sequence); }
std::string err_name(std::uint32_t sequence) { return numbered("err.", sequence); }
std::string checkpoint_name(std::uint32_t sequence) { return numbered("checkpoint.", sequence); }

std::uint32_t sequence_of(std::string_view name, std::string_view prefix) {
    if (name.substr(0, prefix.size()) != prefix) return 0;
    name.remove_prefix(prefix.size());
    if (name.empty() || name.front() == '0') return 0;
    std::uint32_t n = 0;
    const auto [stop, error] = std::from_chars(name.data(), name.data() + name.size(), n);
    return error == std::errc{} && stop == name.data() + name.size() ? n : 0;
}

std::string pack(const LaunchRecord &x) {
    ByteWriter w;
    w.text(x.boot_id);
    w.text(x.program);
    put_list(w, x.argv);
    put_list(w, x.env);
    w.text(x.directory);
    w.u64(x.checkpoint_length);
    w.u64(x.input_base);
    w.u32(x.next_seq);
    w.u32(static_cast<std::uint32_t>(x.notice));
    w.u64(x.epoch);
    w.u32(static_cast<std::uint32_t>(x.wall_s));
    w.u8(x.tentative);
    w.u8(x.account.change);
    w.u8(x.account.made_up);
    w.u32(x.account.uid);
    w.u32(x.account.gid);
    w.u32(static_cast<std::uint32_t>(x.account.groups.size()));
    for (const std::uint32_t group : x.account.groups) w.u32(group);
    for (const std::int64_t v : {x.limits.memory_mb, x.limits.processes, x.limits.cpu_s, x.limits.disk_mb,
                                 x.limits.file_mb})
        w.u64(static_cast<std::uint64_t>(v));
    put_list(w, x.runner);
    put_files(w, x.files);
    w.u8(x.placed);
    w.u32(x.rungs);
    put_list(w, x.writable);
    return seal("DGL5", w.bytes());
}
Result<LaunchRecord> unpack_launch(std::string_view bytes) {
    const Result<std::string_view> fields = unseal("DGL5", bytes);
    if (!fields) return fields.status();
    ByteReader r(*fields);
    LaunchRecord x;
    x.boot_id = r.text();
    x.program = r.text();
    x.argv = get_list(r);
    x.env = get_list(r);
    x.directory = r.text();
    x.checkpoint_length = r.u64();
    x.input_base = r.u64();
    x.next_seq = r.u32();
    x.notice = static_cast<std::int32_t>(r.u32());
    x.epoch = r.u64();
    x.wall_s = static_cast<std::int32_t>(r.u32());
    x.tentative = r.u8() != 0;
    x.account.change = r.u8() != 0;
    x.account.made_up = r.u8() != 0;
    x.account.uid = r.u32();
    x.account.gid = r.u32();
    const std::uint32_t groups = r.u32();
    if (groups > r.left() / 4) return damaged("DGL5");
    for (std::uint32_t i = 0; i < groups; ++i) x.account.groups.push_back(r.u32());
    for (std::int64_t *v : {&x.limits.memory_mb, &x.limits.processes, &x.limits.cpu_s, &x.limits.disk_mb,
                            &x.limits.file_mb})
        *v = static_cast<std::int64_t>(r.u64());
    x.runner = get_list(r);
    x.files = get_files(r);
    x.placed = r.u8() != 0;
    x.rungs = r.u32();
    x.writable = get_list(r);
    if (!r.at_end()) return damaged("DGL5");
    return x;
}

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

std::string pack(const ExitRecord &x) {
    ByteWriter w;
    w.u8(x.known);
    w.u32(static_cast<std::uint32_t>(x.status));
    w.u8(x.innocent);
    w.text(x.reason);
    w.u32(static_cast<std::uint32_t>(x.limit_signal));
    for (const std::int64_t v : {x.user_us, x.system_us, x.max_rss_kb, x.minor_faults, x.major_faults,
                                 x.in_blocks, x.out_blocks})
        w.u64(static_cast<std::uint64_t>(v));
    return seal("DGE2", w.bytes());
}
Result<ExitRecord> unpack_exit(std::string_view bytes) {
    const Result<std::string_view> fields = unseal("DGE2", bytes);
    if (!fields) return fields.status();
    ByteReader r(*fields);
    ExitRecord x;
    x.known = r.u8() != 0;
    x.status = static_cast<std::int32_t>(r.u32());
    x.innocent = r.u8() != 0;
    x.reason = r.text();
    x.limit_signal = static_cast<std::int32_t>(r.u32());
    for (std::int64_t *v : {&x.user_us, &x.system_us, &x.max_rss_kb, &x.minor_faults, &x.major_faults,
                            &x.in_blocks, &x.out_blocks})
        *v = static_cast<std::int64_t>(r.u64());
    if (!r.at_end()) return damaged("DGE2");
    return x;
}

std::string pack(const EndingRecord &x) {
    ByteWriter w;
    w.u8(static_cast<std::uint8_t>(x.kind));
    w.text(x.reason);
    w.u32(static_cast<std::uint32_t>(x.limit_signal));
    w.u8(x.given_back);
    return seal("DGW3", w.bytes());
}
Result<EndingRecord> unpack_ending(std::string_view bytes) {
    const Result<std::string_view> fields = unseal("DGW3", bytes);
    if (!fields) return fields.status();
    ByteReader r(*fields);
    EndingRecord x;
    const std::uint8_t kind = r.u8();
    x.reason = r.text();
    x.limit_signal = static_cast<std::int32_t>(r.u32());
    x.given_back = r.u8();
    if (!r.at_end() || kind > static_cast<std::uint8_t>(Ending::overrun)) return damaged("DGW3");
    x.kind = static_cast<Ending>(kind);
    return x;
}

std::string pack(const OutputsRecord &x) {
    ByteWriter w;
    put_files(w, x.files);
    w.text(x.words);
    return seal("DGO1", w.bytes());
}
Result<OutputsRecord> unpack_outputs(std::string_view bytes) {
    const Result<std::string_view> fields = unseal("DGO1", bytes);
    if (!fields) return fields.status();
    ByteReader r(*fields);
    OutputsRecord x;
    x.files = get_files(r);
    x.words = r.text();
    if (!r.at_end()) return damaged("DGO1");
    return x;
}

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

}  // namespace dcs::files
