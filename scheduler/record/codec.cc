#include "scheduler/record/codec.h"

#include "base/bytes.h"
#include "base/checksum.h"

namespace dcs::record {
namespace {

constexpr std::uint8_t session_version = 1;
constexpr std::uint8_t grain_version = 1;
constexpr std::uint8_t auth_version = 1;
constexpr std::uint8_t hosts_version = 1;
// Far above any record; a length beyond it is damage and not worth a checksum run.
constexpr std::uint32_t max_body = 64u << 20;

Status damaged(const std::string &what) { return fail(Code::io_error, what); }

std::string framed(const std::string &body) {
    ByteWriter w;
    w.bytes().reserve(body.size() + 9);
    w.var(body.size());
    w.u32(crc32c(body));
    w.raw(body);
    return std::move(w.bytes());
}

Result<std::string_view> next_body(std::string_view &in) {
    ByteReader r(in);
    const std::uint64_t length = r.var();
    const std::uint32_t sum = r.u32();
    if (!r.good()) return damaged("it ends inside a record");
    if (length > max_body || length > r.left()) return damaged("a record is longer than the file");
    const std::string_view body = r.raw(length);
    if (crc32c(body) != sum) return damaged("a checksum does not fit");
    in.remove_prefix(in.size() - r.left());
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
        w.svar(v);
}
void get(ByteReader &r, wire::Usage &u) {
    for (std::int64_t *v : {&u.user_us, &u.system_us, &u.max_rss_kb, &u.minor_faults,
                            &u.major_faults, &u.in_blocks, &u.out_blocks})
        *v = r.svar();
}

std::string name_of_host(const core::State &state, core::HostId id) {
    const core::Host *host = state.host(id);
    return host ? host->config.name : std::string();
}

// First byte of a grain: its status and these.
enum Flag : std::uint8_t { flag_own_tree = 4, flag_urgent = 8, flag_params_own_file = 16 };

// What a grain has beyond its parameters; what is not there has its default.
enum Part : std::uint16_t {
    part_wishes = 1u << 0,      // attempts, thrash, notice, host class
    part_failures = 1u << 1,
    part_lease = 1u << 2,       // incarnation, sequence
    part_end = 1u << 3,         // exit code, signal
    part_result = 1u << 4,      // result index
    part_queue = 1u << 5,       // queue position
    part_position = 1u << 6,    // input position
    part_checkpoint = 1u << 7,  // length and checksum, as of the next three
    part_message = 1u << 8,
    part_out = 1u << 9,
    part_err = 1u << 10,
    part_place = 1u << 11,      // offset in the session's results
    part_past = 1u << 12,
    part_current = 1u << 13,
    part_host = 1u << 14,
    part_nogo = 1u << 15
};

std::uint16_t parts_of(const core::Grain &g) {
    const core::Grain none;
    const auto differs = [&](auto... members) { return (... || (g.*members != none.*members)); };
    using G = core::Grain;
    unsigned parts = 0;
    const auto add = [&](Part part, bool there) { if (there) parts |= part; };
    add(part_wishes, differs(&G::attempts, &G::thrash, &G::notice, &G::host_class));
    add(part_failures, differs(&G::failures));
    add(part_lease, differs(&G::incarnation, &G::sequence));
    add(part_end, differs(&G::exit_code, &G::signal));
    add(part_result, differs(&G::result_index));
    add(part_queue, differs(&G::queue_position));
    add(part_position, differs(&G::input_position));
    add(part_checkpoint, differs(&G::checkpoint_length, &G::checkpoint_sum));
    add(part_message, differs(&G::message_length, &G::message_sum));
    add(part_out, differs(&G::out_length, &G::out_sum));
    add(part_err, differs(&G::err_length, &G::err_sum));
    add(part_place, differs(&G::result_offset));
    add(part_past, g.past.get() != wire::Usage());
    add(part_current, g.current.get() != wire::Usage());
    add(part_host, g.host != core::no_host);
    add(part_nogo, !g.nogo->empty());
    return static_cast<std::uint16_t>(parts);
}

void put_content(ByteWriter &w, bool there, std::uint64_t length, std::uint32_t sum) {
    if (!there) return;
    w.var(length);
    w.u32(sum);
}
template <class Length>
void get_content(ByteReader &r, bool there, Length &length, std::uint32_t &sum) {
    if (!there) return;
    const std::uint64_t read = r.var();
    length = static_cast<Length>(read);
    if (length != read) r.spoil();
    sum = r.u32();
}

void put_text(ByteWriter &w, std::string_view text) {
    w.var(text.size());
    w.raw(text);
}
std::string get_text(ByteReader &r) { return std::string(r.raw(r.var())); }

void put_grain(ByteWriter &w, const core::Grain &g, unsigned parts) {
    const auto has = [&](Part part) { return (parts & part) != 0; };
    w.u8(static_cast<std::uint8_t>(static_cast<unsigned>(g.status) |
                                   g.own_tree * flag_own_tree | g.urgent * flag_urgent |
                                   g.params_own_file * flag_params_own_file));
    put(w, g.fingerprint);
    w.u64(g.request);
    w.var(g.params_offset);
    w.var(g.params_length);
    w.u32(g.params_sum);
    w.var(g.input_length);
    if (has(part_wishes)) {
        w.u8(g.attempts);
        w.svar(g.thrash);
        w.svar(g.notice);
        w.var(g.host_class);
    }
    if (has(part_failures)) w.u8(g.failures);
    if (has(part_lease)) {
        w.var(g.incarnation);
        w.var(g.sequence);
    }
    if (has(part_end)) {
        w.svar(g.exit_code);
        w.svar(g.signal);
    }
    if (has(part_result)) w.svar(g.result_index);
    if (has(part_queue)) w.svar(g.queue_position);
    if (has(part_position)) w.var(g.input_position);
    put_content(w, has(part_checkpoint), g.checkpoint_length, g.checkpoint_sum);
    put_content(w, has(part_message), g.message_length, g.message_sum);
    put_content(w, has(part_out), g.out_length, g.out_sum);
    put_content(w, has(part_err), g.err_length, g.err_sum);
    if (has(part_place)) w.var(g.result_offset);
    if (has(part_past)) put(w, g.past);
    if (has(part_current)) put(w, g.current);
}

// A number that is too large for its field spoils the reader.
template <class Number> void get_var(ByteReader &r, Number &out) {
    const std::uint64_t read = r.var();
    out = static_cast<Number>(read);
    if (static_cast<std::uint64_t>(out) != read) r.spoil();
}
template <class Number> void get_svar(ByteReader &r, Number &out) {
    const std::int64_t read = r.svar();
    out = static_cast<Number>(read);
    if (out != read) r.spoil();
}

void get_grain(ByteReader &r, core::Grain &g, unsigned parts) {
    const auto has = [&](Part part) { return (parts & part) != 0; };
    const std::uint8_t first = r.u8();
    if (first >= 2 * flag_params_own_file) r.spoil();
    g.status = static_cast<core::GrainStatus>(first & 3);
    g.own_tree = (first & flag_own_tree) != 0;
    g.urgent = (first & flag_urgent) != 0;
    g.params_own_file = (first & flag_params_own_file) != 0;
    get(r, g.fingerprint);
    g.request = r.u64();
    g.params_offset = r.var();
    get_var(r, g.params_length);
    g.params_sum = r.u32();
    g.input_length = r.var();
    if (has(part_wishes)) {
        g.attempts = r.u8();
        get_svar(r, g.thrash);
        get_svar(r, g.notice);
        get_var(r, g.host_class);
    }
    if (has(part_failures)) g.failures = r.u8();
    if (has(part_lease)) {
        get_var(r, g.incarnation);
        get_var(r, g.sequence);
    }
    if (has(part_end)) {
        get_svar(r, g.exit_code);
        get_svar(r, g.signal);
    }
    if (has(part_result)) get_svar(r, g.result_index);
    if (has(part_queue)) g.queue_position = r.svar();
    if (has(part_position)) g.input_position = r.var();
    get_content(r, has(part_checkpoint), g.checkpoint_length, g.checkpoint_sum);
    get_content(r, has(part_message), g.message_length, g.message_sum);
    get_content(r, has(part_out), g.out_length, g.out_sum);
    get_content(r, has(part_err), g.err_length, g.err_sum);
    if (has(part_place)) g.result_offset = r.var();
    if (has(part_past)) get(r, g.past.edit());
    if (has(part_current)) get(r, g.current.edit());
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
    const std::uint16_t parts = parts_of(grain);
    ByteWriter w;
    w.bytes().reserve(160);
    w.u8(grain_version);
    w.var(static_cast<std::uint32_t>(number));
    w.u16(parts);
    put_grain(w, grain, parts);
    if (parts & part_host) put_text(w, name_of_host(state, grain.host));
    if (parts & part_nogo) {
        w.var(grain.nogo->size());
        for (const core::HostId id : grain.nogo.get()) put_text(w, name_of_host(state, id));
    }
    return framed(w.bytes());
}

namespace {
// What every grain record begins with; leaves the reader behind it.
Result<GrainNumber> begin_grain(ByteReader &r) {
    if (auto s = check_version(r.u8(), grain_version); !s) return s;
    GrainNumber number = 0;
    get_var(r, number);
    if (!r.good() || number < 0) return damaged("a record does not decode");
    return number;
}
}  // namespace

Result<GrainEntry> next_grain(std::string_view &log) {
    const std::string_view all = log;
    auto body = next_body(log);
    if (!body) return body.status();
    ByteReader r(*body);
    const auto number = begin_grain(r);
    if (!number) return number.status();
    return GrainEntry{*number, all.substr(0, all.size() - log.size())};
}

Result<GrainRecord> decode_grain(std::string_view file) {
    auto body = next_body(file);
    if (!body) return body.status();
    if (!file.empty()) return damaged("bytes follow its record");
    ByteReader r(*body);
    const auto number = begin_grain(r);
    if (!number) return number.status();
    GrainRecord record;
    record.number = *number;
    const std::uint16_t parts = r.u16();
    get_grain(r, record.grain, parts);
    if (parts & part_host) record.host = get_text(r);
    const std::uint64_t count = parts & part_nogo ? r.var() : 0;
    for (std::uint64_t i = 0; i < count && r.good(); ++i) record.nogo.push_back(get_text(r));
    if (!r.at_end()) return damaged("a record does not decode");
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

std::string encode_hosts(const core::State &state) {
    ByteWriter w;
    w.u8(hosts_version);
    for (const core::Host &host : state.hosts) {
        const core::HostTotals &t = host.totals;
        if (t == core::HostTotals()) continue;
        put_text(w, host.config.name);
        for (const std::uint64_t v : {t.launched, t.finished, t.failed, t.given_back}) w.var(v);
        w.svar(t.cpu_us);
    }
    return framed(w.bytes());
}

Result<std::map<std::string, core::HostTotals>> decode_hosts(std::string_view file) {
    auto body = next_body(file);
    if (!body) return body.status();
    if (!file.empty()) return damaged("bytes follow its record");
    ByteReader r(*body);
    if (auto s = check_version(r.u8(), hosts_version); !s) return s;
    std::map<std::string, core::HostTotals> table;
    while (r.good() && !r.at_end()) {
        core::HostTotals &t = table[get_text(r)];
        for (std::uint64_t *v : {&t.launched, &t.finished, &t.failed, &t.given_back}) *v = r.var();
        t.cpu_us = r.svar();
    }
    if (!r.good()) return damaged("a record does not decode");
    return table;
}

}  // namespace dcs::record
