#pragma once
// The pool's authority: the key that makes a host a host of this pool. It lies with the scheduler and nowhere else.
#include <cstdint>
#include <string>

#include "pki/certificate.h"

namespace dcs::pki {

inline constexpr std::int64_t day_s = 24 * 3600;
// Clocks of hosts differ; a certificate must be good at once everywhere.
inline constexpr std::int64_t backdated_s = day_s;
inline constexpr std::int64_t certificate_life_s = 90 * day_s;
// Of a control program; it is renewed while the program runs.
inline constexpr std::int64_t program_life_s = day_s;
inline constexpr std::int64_t authority_life_s = 30 * 365 * day_s;

struct Authority {
    std::string key;
    Certificate certificate;
};
Authority make_authority(std::int64_t now_s);
// A certificate (DER) for a public key. Code::invalid for a bad name or key.
Result<std::string> issue(const Authority &authority, std::string_view public_key, Role role, const std::string &name,
                          std::int64_t now_s, std::int64_t life_s = certificate_life_s);
bool in_time(const Certificate &certificate, std::int64_t now_s);
// Only a third of its life is left, or it is not valid at all.
bool wants_renewal(const Certificate &certificate, std::int64_t now_s);

// Who somebody is: in a directory of his own, `key.pem`, `certificate.pem` and `authority.pem`.
struct Identity {
    std::string key;
    Certificate certificate, authority;
};
// Code::not_found if there is none; the text says which file is wrong.
Result<Identity> read_identity(const std::string &directory);
Status write_identity(const std::string &directory, const Identity &identity);
// The key of `directory`, made there if there is none yet (and the directory too).
Result<std::string> key_in(const std::string &directory);

// The authority of `directory` (`authority-key.pem`, `authority.pem`), made there if there is none yet.
Result<Authority> authority_in(const std::string &directory, std::int64_t now_s);

}  // namespace dcs::pki
