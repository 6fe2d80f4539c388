#pragma once
// A process beside a daemon that reads the configuration files again, with the rights of who started the daemon: the
// daemon itself cannot open them any more (privileges.h). It parses nothing and is asked for nothing else.
#include <memory>
#include <string>
#include <vector>

#include "daemon/config_file.h"
#include "daemon/side_process.h"

namespace dcs {

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
