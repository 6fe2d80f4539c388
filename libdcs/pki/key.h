#pragma once
// Keys: ECDSA on the curve P-256, which all current TLS libraries, security modules and certificate tools support. A
// signature is cheap, and the scheduler makes one for each host that connects.
//
// A private key is PKCS#8 DER, a public key SubjectPublicKeyInfo DER; both are plain strings here.
#include <string>
#include <string_view>

#include "base/ids.h"
#include "base/status.h"
#include "pki/digest.h"

namespace dcs::pki {

// Identifies a key: SHA-256 of its public part.
using KeyHash = TokenHash;

std::string new_key();
// Code::invalid unless it is a private key on P-256.
Result<std::string> public_key_of(std::string_view key);

// Files contain keys as PEM, so that other certificate tools can read them.
std::string key_to_pem(std::string_view key);
Result<std::string> key_from_pem(std::string_view pem);

// The hash of a public key. Code::invalid unless it is on P-256 and in its canonical DER form.
Result<KeyHash> hash_of_public_key(std::string_view der);

// A certificate request (PKCS#10 DER), signed with the key, which proves its possession.
Result<std::string> make_request(std::string_view key);
struct Request {
    std::string public_key;
    KeyHash hash{};
};
// Code::invalid if it is malformed, longer than limits::certificate_bytes, for another kind of key, or not signed
// with it.
Result<Request> read_request(std::string_view der);

}  // namespace dcs::pki
