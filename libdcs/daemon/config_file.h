#pragma once
// A daemon's configuration files: TOML, whose keys are the daemon's options. FILE comes first, then those of FILE.d
// that end in .toml, by name; what a later one says counts.
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "daemon/options.h"
#include "daemon/side_process.h"

namespace dcs {

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

}  // namespace dcs
