#pragma once
// The scheduler's update trees as data. The tree of a turn itself belongs to the store.
#include "store/tree_template.h"

namespace dcs::record {

// Names of templates and of the files in their trees.
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
inline constexpr const char *checkpoint_file = "checkpoint";
inline constexpr const char *message_file = "message";
inline constexpr const char *out_file = "out";
inline constexpr const char *err_file = "err";
inline constexpr const char *auth_file = "table";         // root of the authorization table
inline constexpr const char *hosts_file = "table";        // root of the hosts' statistics
inline constexpr const char *trust_file = "table";        // root of what joining has left
inline constexpr const char *handed_over_file = "table";  // root of what the backup has handed over

const store::Forest &forest();

}  // namespace dcs::record
