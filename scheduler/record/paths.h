#pragma once
// Where the trees lie below the state directory:
//   auth/                      the authorization table
//   hosts/                     what became of the grains on each host
//   trust/                     codes for hosts to join, and whose certificates count
//   handed-over/               how far the backup's reports were taken in, by host
//   sessions/<user>/<n>/       a session; <user> is the login name, encoded
//   sessions/<user>/<n>/g/<k>/ a grain that has files of its own
#include <optional>
#include <string>
#include <string_view>

#include "base/ids.h"

namespace dcs::record {

inline constexpr const char *sessions_directory = "sessions";
inline constexpr const char *auth_directory = "auth";
inline constexpr const char *hosts_directory = "hosts";
inline constexpr const char *trust_directory = "trust";
inline constexpr const char *handed_over_directory = "handed-over";

// Injective, and never "", "." or "..": bytes outside [A-Za-z0-9._-] and a leading dot as %XX.
std::string encode_login(std::string_view login);
// Nothing if encode_login() never yields that name.
std::optional<std::string> decode_login(std::string_view name);

std::string session_directory(const SessionKey &key);
std::string grains_directory(const SessionKey &key);  // the parent of its grain trees
std::string grain_directory(const GrainKey &key);

// A session or grain number as a directory name; nothing if it is not its canonical decimal form.
std::optional<std::int32_t> number_of(std::string_view name);

}  // namespace dcs::record
