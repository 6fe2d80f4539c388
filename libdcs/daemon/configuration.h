#pragma once
// A daemon's configuration from its start on: its options out of files and command line, read again while it runs, and
// its record (base/option_table.h).
#include <memory>
#include <string>
#include <vector>

#include "base/option_table.h"
#include "base/fd.h"
#include "daemon/config_file.h"
#include "daemon/options.h"

namespace dcs {

// For refuse(), of a daemon whose configuration is all that it reads.
inline constexpr const char *configuration_stays = "the old configuration remains in effect";

class Configuration {
public:
    // What a daemon's main() begins with: cleans up after the caller (base/program_start.h), reads the configuration
    // files, fills the fields; prints what there is to print and exits, unless the program is to go on.
    static Configuration take(const CommandLine &line, int argc, char **argv);

    // When `directory` is the daemon's own, before it gives up its rights: makes the record there, and starts what
    // reads the files again, if there may be any.
    Status open(const std::string &directory);

    // What reading again has found. `taken`: options of Where::reload that have another value now.
    struct Change {
        std::vector<Setting> settings;
        std::vector<std::string> taken;
        bool has(const char *name) const;
    };
    // Reads the files again, into the fields of `fresh`, a line of the same options with fields of its own. Nothing
    // counts until take(). An error has all that is wrong.
    Result<Change> read(const CommandLine &fresh);
    // The values of the options that can change are those of `change`; logs what has changed and what waits for a
    // restart.
    void take(const Change &change);
    // Nothing has changed, and `stays` ("the old configuration stays") for that reason: noted in the record, and in
    // the log.
    void refuse(const std::string &stays, const Status &why);
    const std::string &refused() const { return record_.refused; }  // why the last reading does not count, or empty

private:
    void note();

    std::string program_, file_;  // file_: no_config, or as in read_config_files()
    std::vector<std::string> arguments_;
    std::vector<bool> can_change_;
    ConfigRecord record_;
    std::unique_ptr<ConfigReader> reader_;
    Fd fd_;
};

}  // namespace dcs
