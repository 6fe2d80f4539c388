#pragma once
// Certificates of the pool: X.509, issued directly by the pool's authority; no chains, no other roots.
#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"
#include "pki/key.h"
#include "pki/subject.h"

namespace dcs::pki {

struct Certificate {
    std::string der;
    Role role = Role::none;
    std::string name;
    std::string serial;                              // hexadecimal
    std::int64_t not_before_s = 0, not_after_s = 0;  // wall clock
    KeyHash key{};                                   // of its public key
    TokenHash fingerprint{};                         // SHA-256 of `der`
};

// Code::invalid if it is not a certificate of a pool: malformed, longer than limits::certificate_bytes,
// without role or name, or with a key usage that does not match its role.
Result<Certificate> read_certificate(std::string_view der);

std::string certificate_to_pem(std::string_view der);
Result<std::string> certificate_from_pem(std::string_view pem);  // the first one, as DER

// The checks in order; the first that fails is reported.
enum class Check : std::uint8_t {
    passed,
    malformed,
    unknown_authority,
    not_yet_valid,
    expired,
    wrong_role,
    wrong_name
};
struct Verification {
    Check check = Check::passed;
    std::string text;  // the error: "the certificate of h1 expired on ..."
    explicit operator bool() const { return check == Check::passed; }
};
// Whether `authority` issued it, it is valid now, and it is for that role and that name (empty: for any).
Verification verify(const Certificate &certificate, const Certificate &authority, Role role, const std::string &name,
                    std::int64_t now_s);
// The same for bytes from a peer.
Verification verify(std::string_view der, const Certificate &authority, Role role, const std::string &name,
                    std::int64_t now_s);

}  // namespace dcs::pki
