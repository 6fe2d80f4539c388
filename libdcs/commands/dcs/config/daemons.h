#pragma once
// The daemons that have configuration files, and what their programs say of these: one table of options is in each
// program, and no other here.
#include <string>
#include <vector>

#include "base/option_table.h"
#include "base/status.h"

namespace dcs::commands {

struct ConfiguredDaemon {
    const char *name;     // "scheduler": its file is scheduler.toml
    const char *program;  // "dcs_scheduler"
    const char *role;     // of `dcs status`
};
const std::vector<ConfiguredDaemon> &configured_daemons();
const ConfiguredDaemon *daemon_called(const std::string &name);  // by name, role or program
// Whose file that is, by its name or, of a file in FILE.d, the folder's; nullptr: it does not follow.
const ConfiguredDaemon *daemon_of_file(const std::string &path);

inline constexpr const char *configuration_folder = "/etc/dcs";
// FOLDER/scheduler.toml if it or the folder of its drop-ins is there; else empty.
std::string config_file_in(const std::string &folder, const ConfiguredDaemon &daemon);

// What a daemon's program finds in `file` (with FILE.d): errors, or if there are none what it would set.
struct Checked {
    std::vector<std::string> errors;
    ConfigRecord record;
};
// not_found: the program is not here.
Result<Checked> check_file(const ConfiguredDaemon &daemon, const std::string &file);
// The same with what the file leaves to the daemon's unit, so that values are checked together, too.
Result<Checked> check_for_unit(const ConfiguredDaemon &daemon, const std::string &file);
// The same of any arguments.
Result<Checked> check_with(const ConfiguredDaemon &daemon, std::vector<std::string> arguments);

// FOLDER/hosts if it exists, with `policy` and `limits` beside it; else empty. The packages' scheduler reads these.
std::string host_table_in(const std::string &folder);

}  // namespace dcs::commands
