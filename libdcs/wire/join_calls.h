#pragma once
// How a host joins the pool (docs/SECURITY.md): codes, requests for certificates, approval, removal.
// Kinds of messages from 80 on.
#include <cstdint>
#include <string>
#include <vector>

#include "wire/user_calls.h"

namespace dcs::wire {

// For root, scheduler_master and the owner of the pool, like all messages here except JoinHost and RenewCertificate.
// Creates a code with which one host joins once. host empty: any host of the host table that has no code yet.
// role of the host: 0 a grain server, 1 a host of control programs (its dcs_begin), 2 the backup.
struct CreateToken {
    std::string host;
    std::int64_t ttl_s = 0;
    std::uint8_t role = 0;
};  // -> TokenCreated
struct TokenCreated {
    std::string token;               // 32 bytes; the scheduler stores only their hash
    std::string id;                  // for `dcs token revoke`
    std::string address, authority;  // where to join; SHA-256 of the authority's certificate
    std::int64_t expires_s = 0;      // wall clock
};

struct ListTokens {};  // -> TokenList
struct TokenRow {
    std::string id, host, by;  // by: the user who created it
    std::int64_t expires_in_s = 0;
    std::string key;        // hash of the key that joined with it; empty: not yet used
    std::uint8_t role = 0;  // as in CreateToken
};
struct PendingRow {  // a request to join without a code
    std::string host, address, key;
    double asked_s = 0;  // ago
};
struct TokenList {
    std::vector<TokenRow> tokens;
    std::vector<PendingRow> pending;
    std::string address, authority;  // as in TokenCreated
};

struct RevokeToken {
    std::string id;
};  // -> Done
// Admits a waiting host: the one whose key has these words, or the only one with this name.
// Any host can request any name, so check the words of its key. `replace`: 1 revokes another key that
// already has this name.
struct ApproveHost {
    std::string host, words;
    std::uint8_t replace = 0;
};  // -> Done
// Removes the host's line from the host table, revokes its certificate permanently and closes its connection.
struct RemoveHost {
    std::string host;
    bool move_grains = false;  // also if it runs grains, which start again elsewhere; else that is refused
};                             // -> Done

// From a host without a certificate, on the TLS port. May be repeated with the same key, for example after a
// lost answer.
struct JoinHost {  // -> Joined, or JoinPending, or ErrorReply
    std::uint16_t protocol = opening_form;
    std::string host;       // empty: the name that the code is for, otherwise own_name
    std::string own_name;   // the name by which the host knows itself
    std::string token;      // 32 bytes; none: an operator must approve
    std::string request;    // PKCS#10
    std::uint8_t role = 0;  // as in CreateToken
};
struct Joined {
    std::string host, certificate, authority;
};  // DER
struct JoinPending {
    std::string host;
};

// From a grain server or the backup on its connection, from a host of control programs or one of these programs, before
// its certificate expires; for the same key.
struct RenewCertificate {
    std::string request;
};
struct Renewed {
    std::string certificate;
};

// How a control program of another host gets its credentials (docs/SECURITY.md): dcs_begin asks for them over
// its host's TLS connection, and the program calls with the issued certificate. Kinds of messages from 62 on.

// From dcs_begin, as the first message of a connection whose certificate has the role of a client host.
struct BeginControl {  // -> Begun, or ErrorReply
    std::uint16_t protocol = opening_form;
    std::string user;        // login name of the caller of dcs_begin; the host vouches for it
    std::string ident;       // as in GetAuth
    std::string public_key;  // DER (SubjectPublicKeyInfo) of a key that dcs_begin made for this program alone
};
struct Begun {
    std::string token;        // 32 bytes
    std::string certificate;  // DER: of that key, for a control program, with (user, host, ident) as its name
    std::string authority;    // DER
};
// A control program's own connection renews its certificate by RenewCertificate for the same key.

// clang-format off
template <class A> void serialize(A &a, CreateToken &x, unsigned) {
    a & at_most(limits::name_bytes, DCS_FIELD(host)) & DCS_FIELD(ttl_s) & DCS_FIELD(role);
}
template <class A> void serialize(A &a, TokenCreated &x, unsigned) {
    a & at_most(sizeof(Token), DCS_FIELD(token)) & at_most(limits::name_bytes, DCS_FIELD(id))
      & at_most(limits::path_bytes, DCS_FIELD(address)) & at_most(limits::certificate_bytes, DCS_FIELD(authority))
      & DCS_FIELD(expires_s);
}
template <class A> void serialize(A &, ListTokens &, unsigned) {}
template <class A> void serialize(A &a, TokenRow &x, unsigned) {
    a & at_most(limits::name_bytes, DCS_FIELD(id)) & at_most(limits::name_bytes, DCS_FIELD(host))
      & at_most(limits::name_bytes, DCS_FIELD(by)) & DCS_FIELD(expires_in_s)
      & at_most(limits::digest_bytes, DCS_FIELD(key)) & shown_since<9>(DCS_FIELD(role));
}
template <class A> void serialize(A &a, PendingRow &x, unsigned) {
    a & at_most(limits::name_bytes, DCS_FIELD(host)) & at_most(limits::path_bytes, DCS_FIELD(address))
      & at_most(limits::digest_bytes, DCS_FIELD(key)) & DCS_FIELD(asked_s);
}
template <class A> void serialize(A &a, TokenList &x, unsigned) {
    a & at_most(limits::join_codes, DCS_FIELD(tokens)) & at_most(limits::pending_hosts, DCS_FIELD(pending))
      & at_most(limits::path_bytes, DCS_FIELD(address)) & at_most(limits::certificate_bytes, DCS_FIELD(authority));
}
template <class A> void serialize(A &a, RevokeToken &x, unsigned) { a & at_most(limits::name_bytes, DCS_FIELD(id)); }
template <class A> void serialize(A &a, ApproveHost &x, unsigned) {
    a & at_most(limits::name_bytes, DCS_FIELD(host)) & at_most(limits::name_bytes, DCS_FIELD(words))
      & since<9>(DCS_FIELD(replace));
}
template <class A> void serialize(A &a, RemoveHost &x, unsigned) {
    a & at_most(limits::name_bytes, DCS_FIELD(host)) & shown_since<9>(DCS_FIELD(move_grains));
}
template <class A> void serialize(A &a, JoinHost &x, unsigned) {
    a & DCS_FIELD(protocol) & at_most(limits::name_bytes, DCS_FIELD(host))
      & at_most(limits::name_bytes, DCS_FIELD(own_name)) & at_most(sizeof(Token), DCS_FIELD(token))
      & at_most(limits::certificate_bytes, DCS_FIELD(request)) & DCS_FIELD(role);
}
template <class A> void serialize(A &a, Joined &x, unsigned) {
    a & at_most(limits::name_bytes, DCS_FIELD(host)) & at_most(limits::certificate_bytes, DCS_FIELD(certificate))
      & at_most(limits::certificate_bytes, DCS_FIELD(authority));
}
template <class A> void serialize(A &a, JoinPending &x, unsigned) { a & at_most(limits::name_bytes, DCS_FIELD(host)); }
template <class A> void serialize(A &a, RenewCertificate &x, unsigned) {
    a & at_most(limits::certificate_bytes, DCS_FIELD(request));
}
template <class A> void serialize(A &a, Renewed &x, unsigned) {
    a & at_most(limits::certificate_bytes, DCS_FIELD(certificate));
}
template <class A> void serialize(A &a, BeginControl &x, unsigned) {
    a & DCS_FIELD(protocol) & at_most(limits::name_bytes, DCS_FIELD(user))
      & at_most(limits::name_bytes, DCS_FIELD(ident)) & DCS_FIELD(public_key);
}
template <class A> void serialize(A &a, Begun &x, unsigned) {
    a & at_most(sizeof(Token), DCS_FIELD(token)) & at_most(limits::certificate_bytes, DCS_FIELD(certificate))
      & at_most(limits::certificate_bytes, DCS_FIELD(authority));
}
// clang-format on

}  // namespace dcs::wire
