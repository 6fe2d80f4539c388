#pragma once
// How a control program of another host gets its credentials (docs/SECURITY.md): dcs_begin asks for them over
// its host's TLS connection, and the program calls with the issued certificate. Kinds of messages from 62 on.
#include <cstdint>
#include <string>

#include "wire/user_calls.h"

namespace dcs::wire {

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
// A control program's own connection renews its certificate by RenewCertificate (join_calls.h) for the same key.

// clang-format off
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
