#pragma once
// Keys: ECDSA on the curve P-256. Every TLS library, security module and certificate tool of today knows it, and a
// signature is cheap to make, which is what a scheduler does for each host that connects.
//
// A private key is PKCS#8 DER, a public one SubjectPublicKeyInfo DER; both are plain strings here.
#include <string>
#include <string_view>

#include "base/ids.h"
#include "base/status.h"
#include "pki/digest.h"

namespace dcs::pki {

// What identifies a key: SHA-256 of its public part.
using KeyHash = TokenHash;

std::string new_key();
// Code::invalid unless it is a private key on P-256.
Result<std::string> public_key_of(std::string_view key);

// Files hold them as PEM, so that every certificate tool can look at them.
std::string key_to_pem(std::string_view key);
Result<std::string> key_from_pem(std::string_view pem);

// What identifies a public key. Code::invalid unless it is one on P-256, in the one form that it has as DER.
Result<KeyHash> hash_of_public_key(std::string_view der);

// A request for a certificate (PKCS#10 DER), signed with the key: whoever sends it has the key.
Result<std::string> make_request(std::string_view key);
struct Request {
    std::string public_key;
    KeyHash hash{};
};
// Code::invalid if it is malformed, longer than limits::certificate_bytes, for another kind of key, or not signed
// with it.
Result<Request> read_request(std::string_view der);

}  // namespace dcs::pki
