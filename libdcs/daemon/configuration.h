#pragma once
// A daemon's configuration from its start on: its options out of files and command line, read again while it runs, and
// its record (base/option_table.h).
#include <memory>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/option_table.h"
#include "daemon/options.h"
#include "daemon/side_process.h"

namespace dcs {

// A daemon's configuration files: TOML, whose keys are the daemon's options. FILE comes first, then those of FILE.d
// that end in .toml, by name; what a later one says counts.
struct ConfigText {
    std::string file, text;
};

// The files of `file`, read; neither it nor FILE.d need be there. `why` gets an error for each that is not used:
// it cannot be read, is no regular file (which is found out without waiting for one), has more than a megabyte, belongs
// to an account that is neither root nor this one, or may be written by others.
std::vector<ConfigText> read_config_files(const std::string &file, std::vector<std::string> &why);

// What the texts say, in their order. `why` gets an error for each key that is wrong, "FILE:LINE: what".
std::vector<FileValue> parse_config(const CommandLine &line, const std::vector<ConfigText> &texts,
                                    std::vector<std::string> &why);

// Texts as bytes and back; nothing for bytes that are none.
std::string pack(const std::vector<ConfigText> &texts);
std::optional<std::vector<ConfigText>> unpack_config(std::string_view bytes);

// A process beside a daemon that reads the configuration files again, with the rights of who started the daemon: the
// daemon itself cannot open them any more (privileges.h). It parses nothing and is asked for nothing else.
class ConfigReader {
public:
    // Forks it; before any thread starts. `file` as in read_config_files(), `program` for its name and for errors.
    static Result<std::unique_ptr<ConfigReader>> start(const std::string &program, const std::string &file);

    // read_config_files() over there. Unreachable if that process is gone.
    Result<std::vector<ConfigText>> read(std::vector<std::string> &why);

private:
    explicit ConfigReader(std::unique_ptr<SideProcess> process) : process_(std::move(process)) {}

    const std::unique_ptr<SideProcess> process_;
};

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
