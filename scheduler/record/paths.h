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
#include "store/tree_template.h"

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

// The scheduler's update trees as data; the tree of a turn itself belongs to the store. Names of templates and of the
// files in their trees.
inline constexpr const char *session_tree = "session";
inline constexpr const char *grain_tree = "grain";
inline constexpr const char *auth_tree = "auth";
inline constexpr const char *hosts_tree = "hosts";
inline constexpr const char *trust_tree = "trust";
inline constexpr const char *handed_over_tree = "handed-over";

inline constexpr const char *status_file = "status";    // root of session and grain
inline constexpr const char *grains_file = "grains";    // log of grain records
inline constexpr const char *inputs_file = "inputs";    // packed specs of small grains
inline constexpr const char *results_file = "results";  // outputs of finished small grains
inline constexpr const char *events_file = "events";    // event log, see wire/event_log.h
inline constexpr const char *params_file = "params";    // packed spec of a big grain
// Two that take turns, so that a new checkpoint is written in place while the record names the old one.
inline constexpr const char *checkpoint_files[] = {"checkpoint", "checkpoint2"};
inline constexpr const char *message_file = "message";
inline constexpr const char *out_file = "out";
inline constexpr const char *err_file = "err";
inline constexpr const char *auth_file = "table";         // root of the authorization table
inline constexpr const char *hosts_file = "table";        // root of the hosts' statistics
inline constexpr const char *trust_file = "table";        // root of what joining has left
inline constexpr const char *handed_over_file = "table";  // root of what the backup has handed over

const store::Forest &forest();

}  // namespace dcs::record
