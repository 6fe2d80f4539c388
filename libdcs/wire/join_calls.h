#pragma once
// How a host becomes one of the pool's (docs/SECURITY.md): codes, requests for certificates, approval, removal.
// Kinds of messages from 80 on.
#include <cstdint>
#include <string>
#include <vector>

#include "wire/user_calls.h"

namespace dcs::wire {

// For root, scheduler_master and the owner of the pool, like everything in here but JoinHost and RenewCertificate.
// A code that lets one host join, once. host empty: whichever is in the host table and has none yet.
// role: what the host is to be, 0 a grain server, 1 a host from which control programs call (its dcs_begin), 2 the backup.
struct CreateToken { std::string host; std::int64_t ttl_s = 0; std::uint8_t role = 0; };  // -> TokenCreated
struct TokenCreated {
    std::string token;                // 32 bytes; not stored anywhere, the scheduler keeps their hash
    std::string id;                   // for `dcs token revoke`
    std::string address, authority;   // where to join; SHA-256 of the authority's certificate
    std::int64_t expires_s = 0;       // wall clock
};

struct ListTokens {};                 // -> TokenList
struct TokenRow {
    std::string id, host, by;         // by: who made it
    std::int64_t expires_in_s = 0;
    std::string key;                  // hash of the key that it was used for; empty: it can still be used
};
struct PendingRow {                   // asked to join without a code
    std::string host, address, key;
    double asked_s = 0;               // ago
};
struct TokenList {
    std::vector<TokenRow> tokens;
    std::vector<PendingRow> pending;
    std::string address, authority;   // as in TokenCreated
};

struct RevokeToken { std::string id; };                      // -> Done
// Lets a host in that waits: the one whose key has these words, or has this name if only one has it.
// The words of its key: anybody can ask under any name. `replace`: 1, if another key has that name already and is to
// count no more.
struct ApproveHost { std::string host, words; std::uint8_t replace = 0; };  // -> Done
// Takes its line out of the host table, revokes its certificate for good and drops its link.
struct RemoveHost { std::string host; };                     // -> Done

// From a host without a certificate, through the TLS door. May be repeated with the same key: whoever has not got
// the answer asks again.
struct JoinHost {                                            // -> Joined, or JoinPending, or ErrorReply
    std::uint16_t protocol = opening_form;
    std::string host;      // empty: the one that the code is for, else own_name
    std::string own_name;  // what the host calls itself
    std::string token;     // 32 bytes; none: a person has to approve
    std::string request;   // PKCS#10
    std::uint8_t role = 0; // as in CreateToken
};
struct Joined { std::string host, certificate, authority; };  // DER
struct JoinPending { std::string host; };

// From a grain server or the backup over its link, before its certificate expires; for the same key.
struct RenewCertificate { std::string request; };
struct Renewed { std::string certificate; };

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
      & at_most(limits::digest_bytes, DCS_FIELD(key));
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
template <class A> void serialize(A &a, RemoveHost &x, unsigned) { a & at_most(limits::name_bytes, DCS_FIELD(host)); }
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
// clang-format on

}  // namespace dcs::wire
