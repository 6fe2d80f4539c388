#include "base/text.h"
#include "daemons.h"

#include <cerrno>
#include <unistd.h>

#include "commands/dcs/frame/start_hint.h"
#include "commands/dcs/pool/start_daemon.h"

namespace dcs::commands {
namespace {

bool there(const std::string &path) { return ::access(path.c_str(), F_OK) == 0; }

const ConfiguredDaemon *daemon_in(const std::string &name) {
    for (const ConfiguredDaemon &d : configured_daemons())
        if (name.find(d.name) != name.npos) return &d;
    return nullptr;
}

}  // namespace

const std::vector<ConfiguredDaemon> &configured_daemons() {
    static const std::vector<ConfiguredDaemon> daemons = {{"scheduler", "dcs_scheduler", "scheduler"},
                                                          {"backupd", "dcs_backupd", "backup"},
                                                          {"grainserver", "dcs_grainserver", "grainserver"}};
    return daemons;
}

const ConfiguredDaemon *daemon_called(const std::string &name) {
    for (const ConfiguredDaemon &d : configured_daemons())
        if (name == d.name || name == d.program || name == d.role) return &d;
    return nullptr;
}

const ConfiguredDaemon *daemon_of_file(const std::string &path) {
    const std::size_t slash = path.rfind('/');
    const std::string name = path.substr(slash == path.npos ? 0 : slash + 1);
    if (const ConfiguredDaemon *d = daemon_in(name); d != nullptr || slash == path.npos) return d;
    const std::string folder = path.substr(0, slash);
    return daemon_in(folder.substr(folder.rfind('/') + 1));
}

std::string config_file_in(const std::string &folder, const ConfiguredDaemon &daemon) {
    const std::string file = folder + "/" + daemon.name + ".toml";
    return there(file) || there(file + ".d") ? file : "";
}

std::string host_table_in(const std::string &folder) {
    const std::string file = folder + "/hosts";
    return there(file) ? file : "";
}

Result<Checked> check_file(const ConfiguredDaemon &daemon, const std::string &file) {
    return check_with(daemon, {"--config", file});
}

Result<Checked> check_for_unit(const ConfiguredDaemon &daemon, const std::string &file) {
    auto checked = check_file(daemon, file);
    if (!checked || !checked->errors.empty()) return checked;
    const std::string beside = file.substr(0, file.rfind('/') + 1);
    const std::pair<const char *, std::string> of_units[] = {{"dir", std::string(services_place) + "/" + daemon.role},
                                                             {"name", "host"},
                                                             {"scheduler", "host:1"},
                                                             {"hosts", beside + "hosts"},
                                                             {"policy", beside + "policy"},
                                                             {"limits", beside + "limits"}};
    std::vector<std::string> arguments = {"--config", file};
    for (const Setting &setting : checked->record.settings)
        for (const auto &[name, value] : of_units)
            if (setting.name == name && setting.origin == by_default)
                arguments.insert(arguments.end(), {std::string("--") + name, value});
    if (arguments.size() == 2) return checked;
    const auto whole = check_with(daemon, arguments);
    if (!whole) return whole.status();
    for (const std::string &error : whole->errors)
        if (error.starts_with(file)) checked->errors.push_back(error);  // others are of this host's own directories
    for (const std::string &warning : whole->record.warnings)
        if (warning.starts_with(file)) checked->record.warnings.push_back(warning);
    return checked;
}

Result<Checked> check_with(const ConfiguredDaemon &daemon, std::vector<std::string> arguments) {
    const std::string program = own_folder() + "/" + daemon.program;
    if (::access(program.c_str(), X_OK) != 0)
        return fail_errno(Code::not_found, program + ", which knows the options of " + daemon.name + ".toml", errno);
    arguments.push_back("--check-config");
    const auto ran = run_to_end(daemon.program, arguments);
    if (!ran) return ran.status();
    Checked checked;
    const auto record = ran->exit_code == 0 ? config_record_of(ran->output + "\n") : std::nullopt;
    if (record) checked.record = *record;
    std::string_view rest = ran->output;
    while (!record && !rest.empty()) checked.errors.emplace_back(take_line(rest));
    if (!record && checked.errors.empty())
        checked.errors.push_back(program + " said nothing and ended with exit code " + std::to_string(ran->exit_code));
    return checked;
}

}  // namespace dcs::commands
