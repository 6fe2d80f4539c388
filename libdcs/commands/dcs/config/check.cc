// dcs config check: whether daemons would take what their configuration files say.
#include <cstdio>

#include "base/json.h"
#include "commands/dcs/frame/call.h"
#include "commands/dcs/frame/pool_directory.h"
#include "commands/dcs/frame/table.h"
#include "commands/dcs/frame/unicode.h"
#include "daemons.h"

namespace dcs::commands {
namespace {

struct File {
    const ConfiguredDaemon *daemon;
    std::string path;
    std::vector<std::string> arguments;  // with which its program checks it
};

Failure unknown_file(const std::string &path) {
    return usage_failure("the name of " + path + " does not say which daemon it configures",
                         "add --daemon scheduler, --daemon grainserver or --daemon backupd");
}

// What the line names, or what lies in the folder.
std::optional<Failure> choose_files(const Call &call, std::vector<File> &files) {
    const auto whose = call.arguments.value("daemon");
    const ConfiguredDaemon *only = whose ? daemon_called(*whose) : nullptr;
    for (const std::string &word : call.arguments.words) {
        const ConfiguredDaemon *daemon = only != nullptr ? only : daemon_of_file(word);
        if (daemon == nullptr) return unknown_file(word);
        files.push_back({daemon, absolute_path(word), {"--config", absolute_path(word)}});
    }
    if (!call.arguments.words.empty()) return std::nullopt;
    const std::string folder = absolute_path(call.arguments.value("from").value_or(configuration_folder));
    for (const ConfiguredDaemon &daemon : configured_daemons()) {
        const std::string path = config_file_in(folder, daemon);
        if (!path.empty() && (only == nullptr || only == &daemon)) files.push_back({&daemon, path, {"--config", path}});
    }
    const ConfiguredDaemon *scheduler = daemon_called("scheduler");
    if (const std::string table = host_table_in(folder); !table.empty() && (only == nullptr || only == scheduler))
        files.push_back({scheduler, table, {"--config", "none", "--dir", folder}});
    if (files.empty() && call.format == Format::table)
        std::printf("there are no configuration files in %s: scheduler.toml, grainserver.toml, backupd.toml, hosts\n",
                    printable(folder).c_str());
    return std::nullopt;
}

std::string row_of(const File &file, const Checked &checked) {
    const auto texts = [](const std::vector<std::string> &lines) {
        std::vector<std::string> json;
        for (const std::string &line : lines) json.push_back(json_string(line));
        return json_array(json);
    };
    return JsonObject()
        .add("daemon", file.daemon->name)
        .add("file", file.path)
        .add("good", checked.errors.empty())
        .add_raw("errors", texts(checked.errors))
        .add_raw("warnings", texts(checked.record.warnings))
        .text();
}

int check(const Call &call) {
    std::vector<File> files;
    if (const auto failure = choose_files(call, files)) return call.fail(*failure);
    std::vector<std::string> rows;
    std::int64_t errors = 0;
    for (const File &file : files) {
        const auto checked = check_with(*file.daemon, file.arguments);
        if (!checked) return call.fail(failure_of(file.path + " was not checked", checked.status()));
        errors += static_cast<std::int64_t>(checked->errors.size());
        rows.push_back(row_of(file, *checked));
        if (call.format == Format::json) continue;
        for (const std::string &error : checked->errors) std::fprintf(stderr, "%s\n", printable(error).c_str());
        for (const std::string &warning : checked->record.warnings)
            std::fprintf(stderr, "warning: %s\n", printable(warning).c_str());
        if (checked->errors.empty())
            std::printf("%s%s\n", printable(file.path).c_str(), call.format == Format::name ? "" : ": good");
    }
    if (call.format == Format::json)
        std::printf("%s\n", JsonObject("dcs.config.check/1").add_raw("files", json_array(rows)).text().c_str());
    if (errors == 0) return exits::ok;
    return call.fail({exits::error, "invalid", "the configuration has " + counted(errors, "error"),
                      "a running daemon keeps its old configuration; a daemon with errors does not start"});
}

}  // namespace

extern const Verb config_check_verb = {
    .noun = "config",
    .name = "check",
    .words = "[FILE...]",
    .summary = "check configuration files",
    .about = R"(Checks configuration files as the daemons would read them: all errors at once, with file and line. The
files that they name, such as the host table, are checked too, and `hosts`, `policy` and `limits` beside them, which
the packages' scheduler reads. Needs no daemon.

Examples:
  dcs config check
  dcs config check /etc/dcs/scheduler.toml && systemctl reload dcs-scheduler
  dcs config check --from ./etc       a directory that is to become /etc/dcs
)",
    .options = {{"from", 0, "DIR", some_text,
                 "the directory of scheduler.toml, grainserver.toml and backupd.toml (default: /etc/dcs)"},
                {"daemon", 0, "NAME", one_of("scheduler|grainserver|backupd"),
                 "the daemon that the files configure (default: by their names)"}},
    .notes = R"(Without FILE, all existing files are checked. A file's drop-ins (FILE.d/*.toml) are checked with it. The
exit code is 1 if there are errors. Warnings name what is probably not meant: logins that this host does not know, a
host table without hosts.
)",
    .run = check};

}  // namespace dcs::commands
