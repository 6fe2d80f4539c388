#pragma once
// The pool's authority: the key that issues the certificates of this pool's hosts. Only the scheduler has it.
#include <cstdint>
#include <optional>
#include <string>

#include "pki/certificate.h"

namespace dcs::pki {

inline constexpr std::int64_t day_s = 24 * 3600;
// Clocks of hosts differ; a certificate must be valid at once everywhere.
inline constexpr std::int64_t backdated_s = day_s;
inline constexpr std::int64_t certificate_life_s = 90 * day_s;
// For a control program; renewed while the program runs.
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
// A certificate (DER) of a server outside of the pool's trust. `names`: as text of the extension, "DNS:h1,IP:10.0.0.1".
std::string self_signed(const std::string &key, const std::string &name, const std::string &names, std::int64_t now_s,
                        std::int64_t life_s);
bool in_time(const Certificate &certificate, std::int64_t now_s);
// Whether at most a third of its life is left, or it is not valid at all.
bool wants_renewal(const Certificate &certificate, std::int64_t now_s);

// The identity of a party, in a directory of its own: `key.pem`, `certificate.pem` and `authority.pem`.
struct Identity {
    std::string key;
    Certificate certificate, authority;
};
// Code::not_found if there is none; the text names the file with the error. Its key may be shared with this group.
Result<Identity> read_identity(const std::string &directory, std::optional<std::uint32_t> readers = {});
// The same with the next certificate (DER) for its key. Code::protocol: it is not that.
Result<Identity> with_next(Identity who, std::string_view certificate, Role role, std::int64_t now_s);
Status write_identity(const std::string &directory, const Identity &identity);
// Only its certificate, in the place of the present one, which any time can be read: with its group and mode.
Status replace_certificate(const std::string &directory, const Certificate &certificate);
// Lets this group read them, and nothing else.
Status share_identity(const std::string &directory, std::uint32_t readers);
// The key in `directory`; creates it (and the directory) if there is none. It may be shared with this group.
Result<std::string> key_in(const std::string &directory, std::optional<std::uint32_t> readers = {});
// The key that shall replace it: made once, and kept beside it until drop_next_key() or use of it.
Result<std::string> next_key_in(const std::string &directory);
void drop_next_key(const std::string &directory);

// The authority in `directory` (`authority-key.pem`, `authority.pem`); creates it if there is none.
// Code::refused: the second is there without the first.
Result<Authority> authority_in(const std::string &directory, std::int64_t now_s);

}  // namespace dcs::pki
