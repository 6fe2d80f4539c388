// Sessions, the authorization table, hosts; grains are in codec.cc.
#include "scheduler/record/codec.h"
#include "scheduler/record/frame.h"

namespace dcs::record {
namespace {

constexpr std::uint8_t session_version = 2;  // 1: no event log
constexpr std::uint8_t auth_version = 2;  // 1: no programs of other hosts
constexpr std::uint8_t hosts_version = 2;

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
    w.u64(info.events_length);
    return framed(w.bytes());
}

Result<core::SessionInfo> decode_session(std::string_view file) {
    auto body = next_body(file);
    if (!body) return body.status();
    if (!file.empty()) return damaged("bytes follow its record");
    ByteReader r(*body);
    const std::uint8_t version = r.u8();
    if (auto s = check_version(version, session_version); !s) return s;
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
    if (version > 1) info.events_length = r.u64();
    if (!r.at_end() || status > static_cast<std::uint8_t>(core::SessionStatus::terminated))
        return damaged("a record does not decode");
    return info;
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
        w.text(entry.host);
        if (!entry.host.empty()) put(w, entry.key);
    }
    return framed(w.bytes());
}

Result<std::map<TokenHash, core::AuthEntry>> decode_auth(std::string_view file) {
    auto body = next_body(file);
    if (!body) return body.status();
    if (!file.empty()) return damaged("bytes follow its record");
    ByteReader r(*body);
    const std::uint8_t version = r.u8();
    if (version != 1)
        if (auto s = check_version(version, auth_version); !s) return s;
    std::map<TokenHash, core::AuthEntry> table;
    const std::uint32_t count = r.u32();
    for (std::uint32_t i = 0; i < count && r.good(); ++i) {
        TokenHash hash{};
        get(r, hash);
        core::AuthEntry entry;
        entry.user = std::string(r.text());
        entry.ident = std::string(r.text());
        entry.stamp_s = get_i64(r);
        if (version > 1) entry.host = std::string(r.text());
        if (!entry.host.empty()) get(r, entry.key);
        table[hash] = std::move(entry);
    }
    if (!r.at_end() || table.size() != count) return damaged("a record does not decode");
    return table;
}

namespace {

void put_setting(ByteWriter &w, const core::HostSetting &s) {
    w.svar(s.slots);
    for (const Duration d : {s.interval, s.alert, s.limit, s.extended}) w.svar(d.ns);
    w.var(s.host_class);
    w.u8(s.drained);
}

void get_setting(ByteReader &r, core::HostSetting &s) {
    s.slots = static_cast<std::int32_t>(r.svar());
    for (Duration *d : {&s.interval, &s.alert, &s.limit, &s.extended}) d->ns = r.svar();
    s.host_class = static_cast<std::uint32_t>(r.var());
    s.drained = r.u8() != 0;
}

}  // namespace

std::string encode_hosts(const core::State &state) {
    ByteWriter w;
    w.u8(hosts_version);
    for (const core::Host &host : state.hosts) {
        const core::HostTotals &t = host.totals;
        if (t == core::HostTotals() && host.setting == core::HostSetting()) continue;
        put_text(w, host.config.name);
        for (const std::uint64_t v : {t.launched, t.finished, t.failed, t.given_back, t.blamed}) w.var(v);
        w.svar(t.cpu_us);
        const bool set = host.setting != core::HostSetting();
        w.u8(set);
        if (set) put_setting(w, host.setting);
    }
    return framed(w.bytes());
}

Result<std::map<std::string, HostRecord>> decode_hosts(std::string_view file) {
    auto body = next_body(file);
    if (!body) return body.status();
    if (!file.empty()) return damaged("bytes follow its record");
    ByteReader r(*body);
    const std::uint8_t version = r.u8();
    if (auto s = check_version(version, hosts_version); !s) return s;
    std::map<std::string, HostRecord> table;
    while (r.good() && !r.at_end()) {
        HostRecord &host = table[get_text(r)];
        core::HostTotals &t = host.totals;
        for (std::uint64_t *v : {&t.launched, &t.finished, &t.failed, &t.given_back}) *v = r.var();
        if (version >= 2) t.blamed = r.var();
        t.cpu_us = r.svar();
        if (version >= 2 && r.u8() != 0) get_setting(r, host.setting);
    }
    if (!r.good()) return damaged("a record does not decode");
    return table;
}

}  // namespace dcs::record
