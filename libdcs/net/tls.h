#pragma once
// TLS 1.3 for doors and connections: who we are and whom we believe. Nothing of OpenSSL shows here.
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "pki/certificate.h"

namespace dcs::net {

// Whose certificate a peer must have. Exactly one of `authority` and `authority_hash` is set.
struct TlsTrust {
    std::string authority;                    // the pool's authority, DER
    std::optional<TokenHash> authority_hash;  // SHA-256 of it: the peer shows it (before a host has joined)
    pki::Role role = pki::Role::none;         // that the peer's certificate must be for
    std::vector<pki::Role> also;              // doors: or for one of these
    bool strangers = false;                   // doors: peers without a certificate may come in
};
struct TlsSelf {
    std::string key, certificate, authority;  // DER; all empty: we have none (only to connect)
};

// Made once, used by many connections.
class TlsContext;
using TlsContextPtr = std::shared_ptr<TlsContext>;
Result<TlsContextPtr> tls_context(const TlsSelf &self, const TlsTrust &trust);

// What a peer's certificate says; role `none`: it showed none.
struct TlsPeer {
    pki::Role role = pki::Role::none;
    std::string name, serial;
    pki::KeyHash key{};
    std::int64_t not_after_s = 0;
};

}  // namespace dcs::net
