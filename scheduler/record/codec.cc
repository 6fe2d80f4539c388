#include "scheduler/record/codec.h"

#include "base/bytes.h"
#include "base/checksum.h"

namespace dcs::record {
namespace {

constexpr std::uint8_t session_version = 1;
constexpr std::uint8_t grain_version = 1;
constexpr std::uint8_t auth_version = 1;
constexpr std::size_t frame_bytes = 8;
// Far above any record; a length beyond it is damage and not worth a checksum run.
constexpr std::uint32_t max_body = 64u << 20;

Status damaged(const std::string &what) { return fail(Code::io_error, what); }

std::string framed(const std::string &body) {
    ByteWriter w;
    w.u32(static_cast<std::uint32_t>(body.size()));
    w.u32(crc32c(body));
    w.raw(body);
    return std::move(w.bytes());
}

Result<std::string_view> next_body(std::string_view &in) {
    ByteReader r(in);
    const std::uint32_t length = r.u32(), sum = r.u32();
    if (!r.good()) return damaged("it ends inside a record");
    if (length > max_body || length > r.left()) return damaged("a record is longer than the file");
    const std::string_view body = r.raw(length);
    if (crc32c(body) != sum) return damaged("a checksum does not fit");
    in.remove_prefix(frame_bytes + length);
    return body;
}

Status check_version(std::uint8_t found, std::uint8_t known) {
    if (found == known) return Status::ok();
    return damaged("it has format " + std::to_string(found) + ", this scheduler reads " +
                   std::to_string(known));
}

template <std::size_t n> void put(ByteWriter &w, const std::array<std::uint8_t, n> &bytes) {
    for (const std::uint8_t b : bytes) w.u8(b);
}
template <std::size_t n> void get(ByteReader &r, std::array<std::uint8_t, n> &bytes) {
    for (std::uint8_t &b : bytes) b = r.u8();
}
void put(ByteWriter &w, std::int32_t v) { w.u32(static_cast<std::uint32_t>(v)); }
void put(ByteWriter &w, std::int64_t v) { w.u64(static_cast<std::uint64_t>(v)); }
std::int32_t get_i32(ByteReader &r) { return static_cast<std::int32_t>(r.u32()); }
std::int64_t get_i64(ByteReader &r) { return static_cast<std::int64_t>(r.u64()); }

void put(ByteWriter &w, const wire::Usage &u) {
    for (const std::int64_t v : {u.user_us, u.system_us, u.max_rss_kb, u.minor_faults,
                                 u.major_faults, u.in_blocks, u.out_blocks})
        put(w, v);
}
void get(ByteReader &r, wire::Usage &u) {
    for (std::int64_t *v : {&u.user_us, &u.system_us, &u.max_rss_kb, &u.minor_faults,
                            &u.major_faults, &u.in_blocks, &u.out_blocks})
        *v = get_i64(r);
}

std::string name_of_host(const core::State &state, core::HostId id) {
    const core::Host *host = state.host(id);
    return host ? host->config.name : std::string();
}

bool read_status(std::uint8_t byte, core::GrainStatus &status) {
    status = static_cast<core::GrainStatus>(byte);
    return byte <= static_cast<std::uint8_t>(core::GrainStatus::killed);
}

enum Flag : std::uint8_t { flag_own_tree = 1, flag_urgent = 2, flag_params_own_file = 4 };

void put_grain(ByteWriter &w, const core::Grain &g) {
    w.u8(static_cast<std::uint8_t>(g.status));
    w.u8(static_cast<std::uint8_t>((g.own_tree ? flag_own_tree : 0) | (g.urgent ? flag_urgent : 0) |
                                   (g.params_own_file ? flag_params_own_file : 0)));
    w.u8(g.attempts);
    w.u8(g.failures);
    put(w, g.thrash);
    put(w, g.notice);
    w.u32(g.host_class);
    w.u32(g.incarnation);
    w.u32(g.sequence);
    put(w, g.exit_code);
    put(w, g.signal);
    put(w, g.result_index);
    put(w, g.queue_position);
    put(w, g.fingerprint);
    w.u64(g.request);
    w.u64(g.params_offset);
    w.u32(g.params_length);
    for (const std::uint64_t v : {g.input_length, g.input_position, g.checkpoint_length,
                                  g.message_length, g.out_length, g.err_length, g.result_offset})
        w.u64(v);
    put(w, g.past);
    put(w, g.current);
}

bool get_grain(ByteReader &r, core::Grain &g) {
    const bool status_ok = read_status(r.u8(), g.status);
    const std::uint8_t flags = r.u8();
    g.own_tree = flags & flag_own_tree;
    g.urgent = flags & flag_urgent;
    g.params_own_file = flags & flag_params_own_file;
    g.attempts = r.u8();
    g.failures = r.u8();
    g.thrash = get_i32(r);
    g.notice = get_i32(r);
    g.host_class = r.u32();
    g.incarnation = r.u32();
    g.sequence = r.u32();
    g.exit_code = get_i32(r);
    g.signal = get_i32(r);
    g.result_index = get_i32(r);
    g.queue_position = get_i64(r);
    get(r, g.fingerprint);
    g.request = r.u64();
    g.params_offset = r.u64();
    g.params_length = r.u32();
    for (std::uint64_t *v : {&g.input_length, &g.input_position, &g.checkpoint_length,
                             &g.message_length, &g.out_length, &g.err_length, &g.result_offset})
        *v = r.u64();
    get(r, g.past);
    get(r, g.current);
    return status_ok;
}

}  // namespace

std::string encode_session(const core::SessionInfo &info) {
    ByteWriter w;
    w.u8(session_version);
    w.u8(static_cast<std::uint8_t>(info.status));
    w.u64(info.seniority);
    w.text(info.ident);
    put(w, info.token);
    w.u64(info.open_request);
    w.u8(info.resumable);
    put(w, info.sent);
    put(w, info.shown);
    put(w, info.result_count);
    put(w, info.queue_front);
    put(w, info.queue_back);
    w.u64(info.inputs_length);
    w.u64(info.results_length);
    w.u64(info.grains_length);
    return framed(w.bytes());
}

Result<core::SessionInfo> decode_session(std::string_view file) {
    auto body = next_body(file);
    if (!body) return body.status();
    if (!file.empty()) return damaged("bytes follow its record");
    ByteReader r(*body);
    if (auto s = check_version(r.u8(), session_version); !s) return s;
    core::SessionInfo info;
    const std::uint8_t status = r.u8();
    info.status = static_cast<core::SessionStatus>(status);
    info.seniority = r.u64();
    info.ident = std::string(r.text());
    get(r, info.token);
    info.open_request = r.u64();
    info.resumable = r.u8() != 0;
    info.sent = get_i32(r);
    info.shown = get_i32(r);
    info.result_count = get_i32(r);
    info.queue_front = get_i64(r);
    info.queue_back = get_i64(r);
    info.inputs_length = r.u64();
    info.results_length = r.u64();
    info.grains_length = r.u64();
    if (!r.at_end() || status > static_cast<std::uint8_t>(core::SessionStatus::terminated))
        return damaged("a record does not decode");
    return info;
}

std::string encode_grain(const core::State &state, GrainNumber number, const core::Grain &grain) {
    ByteWriter w;
    w.u8(grain_version);
    put(w, number);
    put_grain(w, grain);
    w.text(name_of_host(state, grain.host));
    w.u32(static_cast<std::uint32_t>(grain.nogo.size()));
    for (const core::HostId id : grain.nogo) w.text(name_of_host(state, id));
    return framed(w.bytes());
}

Result<GrainRecord> next_grain(std::string_view &log) {
    auto body = next_body(log);
    if (!body) return body.status();
    ByteReader r(*body);
    if (auto s = check_version(r.u8(), grain_version); !s) return s;
    GrainRecord record;
    record.number = get_i32(r);
    const bool known = get_grain(r, record.grain);
    record.host = std::string(r.text());
    const std::uint32_t count = r.u32();
    for (std::uint32_t i = 0; i < count && r.good(); ++i) record.nogo.emplace_back(r.text());
    if (!known || !r.at_end() || record.number < 0) return damaged("a record does not decode");
    return record;
}

Result<GrainRecord> decode_grain(std::string_view file) {
    auto record = next_grain(file);
    if (record && !file.empty()) return damaged("bytes follow its record");
    return record;
}

std::string encode_auth(const std::map<TokenHash, core::AuthEntry> &table) {
    ByteWriter w;
    w.u8(auth_version);
    w.u32(static_cast<std::uint32_t>(table.size()));
    for (const auto &[hash, entry] : table) {
        put(w, hash);
        w.text(entry.user);
        w.text(entry.ident);
        put(w, entry.stamp_s);
    }
    return framed(w.bytes());
}

Result<std::map<TokenHash, core::AuthEntry>> decode_auth(std::string_view file) {
    auto body = next_body(file);
    if (!body) return body.status();
    if (!file.empty()) return damaged("bytes follow its record");
    ByteReader r(*body);
    if (auto s = check_version(r.u8(), auth_version); !s) return s;
    std::map<TokenHash, core::AuthEntry> table;
    const std::uint32_t count = r.u32();
    for (std::uint32_t i = 0; i < count && r.good(); ++i) {
        TokenHash hash{};
        get(r, hash);
        core::AuthEntry entry;
        entry.user = std::string(r.text());
        entry.ident = std::string(r.text());
        entry.stamp_s = get_i64(r);
        table[hash] = std::move(entry);
    }
    if (!r.at_end() || table.size() != count) return damaged("a record does not decode");
    return table;
}

}  // namespace dcs::record
