#pragma once
// What a daemon's options are set to, and by what: the file `configuration` of its directory, which it writes at its
// start and whenever it reads its configuration again. `dcs config show` and `dcs status` read it.
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dcs {

// `origin`: by_default, by_line, or "FILE:LINE".
struct Setting {
    std::string name, value, origin;
    bool operator==(const Setting &) const = default;
};
inline constexpr const char *by_default = "default", *by_line = "command line";

struct ConfigRecord {
    std::vector<Setting> settings;       // all options, in the order of --help
    std::vector<Setting> after_restart;  // what the files say of some, which counts after a restart
    std::string refused;                 // why what was read last does not count; empty: it does
    std::vector<std::string> warnings;   // of a check: what counts, and is probably not meant
    bool operator==(const ConfigRecord &) const = default;
};
inline constexpr const char *configuration_name = "configuration";  // in the daemon's directory

// Lines of line_for_programs() (option_table.h): "option" NAME VALUE ORIGIN for each, "restart" alike, "refused" TEXT,
// "warning" TEXT for each, "end".
std::string to_text(const ConfigRecord &record);
// Nothing for a text that is not whole, or none of these.
std::optional<ConfigRecord> config_record_of(std::string_view text);

}  // namespace dcs
