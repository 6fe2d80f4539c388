#pragma once
// TLS 1.3 for doors and connections: who we are and whom we believe. Nothing of OpenSSL shows here.
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
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

// One side of a TLS 1.3 connection without its socket: bytes from the wire in, bytes for the wire out. Session
// tickets, resumption and early data are off: each connection authenticates itself.
class TlsSession {
public:
    enum class Side { door, caller };
    TlsSession(TlsContextPtr context, Side side);
    ~TlsSession();
    TlsSession(const TlsSession &) = delete;
    TlsSession &operator=(const TlsSession &) = delete;

    // Appends the plain text to `plain`. A failure (refused: by a check of either side; broken: of the connection) says
    // which check failed; take_output() then still has what the peer learns of it. A caller begins with feed("").
    Status feed(std::string_view from_wire, std::string *plain);
    // To be sent as soon as the handshake is over.
    void send(std::string plain);
    std::string take_output();  // for the wire

    bool open() const;            // the handshake is over, the peer has been checked
    bool ended() const;           // the peer said that it sends no more
    std::size_t waiting() const;  // bytes given to send() before that
    const TlsPeer &peer() const;
    const TlsPeer &claimed() const;  // role and name of a certificate that may have been refused
    // What failed is the time at which a certificate is valid, or may be that: it passes when a clock is set right.
    bool about_time() const;

private:
    struct Inside;
    std::unique_ptr<Inside> inside_;
};

}  // namespace dcs::net
