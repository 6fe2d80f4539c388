// Codes for hosts to join, and whose certificates count.
#include "scheduler/record/codec.h"
#include "scheduler/record/frame.h"

namespace dcs::record {
namespace {
constexpr std::uint8_t trust_version = 3;  // 1: no roles, all keys are of grain servers; 2: no backups
}

std::string encode_trust(const core::Trust &trust) {
    ByteWriter w;
    w.u8(trust_version);
    w.var(trust.codes.size());
    for (const auto &[hash, code] : trust.codes) {
        put(w, hash);
        put_text(w, code.host);
        put_text(w, code.by);
        put(w, code.expires_s);
        w.u8(code.used);
        w.u8(code.key.has_value());
        if (code.key) put(w, *code.key);
        w.u8(static_cast<std::uint8_t>(code.role));
    }
    w.var(trust.clients.size());
    w.var(trust.backups.size());
    for (const auto *keys : {&trust.clients, &trust.backups, &trust.keys})
        for (const auto &[host, key] : *keys) {
            put_text(w, host);
            put(w, key);
        }
    return framed(w.bytes());
}

Result<core::Trust> decode_trust(std::string_view file) {
    auto body = next_body(file);
    if (!body) return body.status();
    if (!file.empty()) return damaged("bytes follow its record");
    ByteReader r(*body);
    const std::uint8_t version = r.u8();
    if (version != 1 && version != 2)
        if (auto s = check_version(version, trust_version); !s) return s;
    core::Trust trust;
    for (std::uint64_t left = r.var(); left > 0 && r.good(); --left) {
        TokenHash hash{};
        get(r, hash);
        core::JoinCode &code = trust.codes[hash];
        code.host = get_text(r);
        code.by = get_text(r);
        code.expires_s = get_i64(r);
        code.used = r.u8() != 0;
        if (r.u8() != 0) get(r, code.key.emplace());
        const std::uint8_t role = version > 1 ? r.u8() : 0;
        if (!core::good_role(role)) return damaged("a record does not decode");
        code.role = static_cast<core::HostRole>(role);
    }
    const std::uint64_t clients = version > 1 ? r.var() : 0, backups = version > 2 ? r.var() : 0;
    for (std::uint64_t i = 0; i < clients && r.good(); ++i) {
        const std::string host = get_text(r);
        get(r, trust.clients[host]);
    }
    for (std::uint64_t i = 0; i < backups && r.good(); ++i) {
        const std::string host = get_text(r);
        get(r, trust.backups[host]);
    }
    while (r.good() && !r.at_end()) {
        const std::string host = get_text(r);
        get(r, trust.keys[host]);
    }
    if (!r.good()) return damaged("a record does not decode");
    return trust;
}

}  // namespace dcs::record
