#pragma once
// Certificates of the pool: X.509, issued directly by the pool's authority; no chains, no other roots.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "pki/key.h"

namespace dcs::pki {

// The subject of a certificate: a role and a name, encoded in its only alternative name, a URI: "dcs:grainserver/h1".
// client: a host that runs control programs; program: one control program, named USER/HOST/IDENT; backup: the
// passive backup, which connects to the scheduler and accepts connections of grain servers.
enum class Role : std::uint8_t { none, authority, scheduler, grain_server, client, program, backup };
const char *name_of(Role role);  // "a grain server"

// A name (base/text.h), or USER/HOST/IDENT of a program.
bool good_subject(Role role, const std::string &name);
std::string subject_uri(Role role, const std::string &name);
// Nothing unless the URI is the result of subject_uri() for a valid subject.
struct Subject {
    Role role = Role::none;
    std::string name;
};
std::optional<Subject> subject_of(std::string_view uri);

// The parts of a control program's name; nothing for a name of another form.
struct ProgramName {
    std::string user, host, ident;
};
std::optional<ProgramName> program_name(const std::string &name);
std::string name_of(const ProgramName &program);

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
