// dcs config check: whether daemons would take what their configuration files say.
// dcs config show: what the daemons' options are set to, and by what.
#include <algorithm>
#include <cerrno>
#include <cstdio>

#include <fcntl.h>
#include <unistd.h>

#include "base/beneath.h"
#include "base/files.h"
#include "base/json.h"
#include "commands/dcs/frame/call.h"
#include "commands/dcs/frame/pool_directory.h"
#include "commands/dcs/frame/table.h"
#include "daemons.h"
#include "locks/dcs_atoms.h"
#include "locks/files/lock_search.h"

namespace dcs::commands {
namespace {

struct File {
    const ConfiguredDaemon *daemon;
    std::string path;
    std::vector<std::string> arguments;  // with which its program checks it; none: those of its unit
};

Failure unknown_file(const std::string &path) {
    return usage_failure("the name of " + path + " does not say which daemon it configures",
                         "add --daemon scheduler, --daemon grainserver or --daemon backupd");
}

// A name with a mistake is a file that no daemon reads.
void warn_of_unread(const std::string &folder) {
    const Result<Fd> fd = open_directory(AT_FDCWD, folder);
    const auto names = fd ? list_directory(fd->get()) : Result<std::vector<std::string>>(fd.status());
    if (!names) return;
    for (const std::string &name : *names) {
        const bool of_drop_ins = name.ends_with(".d");
        if (!of_drop_ins && !name.ends_with(".toml")) continue;
        if (daemon_of_file(folder + "/" + name + (of_drop_ins ? "/of.toml" : "")) == nullptr)
            std::fprintf(stderr, "warning: no daemon reads %s/%s\n", printable(folder).c_str(),
                         printable(name).c_str());
    }
}

// What the line names, or what lies in the folder.
std::optional<Failure> choose_files(const Call &call, std::vector<File> &files) {
    const auto whose = call.arguments.value("daemon");
    const ConfiguredDaemon *only = whose ? daemon_called(*whose) : nullptr;
    for (const std::string &word : call.arguments.words) {
        const ConfiguredDaemon *daemon = only != nullptr ? only : daemon_of_file(word);
        if (daemon == nullptr) return unknown_file(word);
        files.push_back({daemon, absolute_path(word), {}});
    }
    if (!call.arguments.words.empty()) return std::nullopt;
    const std::string folder = absolute_path(call.arguments.value("from").value_or(configuration_folder));
    for (const ConfiguredDaemon &daemon : configured_daemons()) {
        const std::string path = config_file_in(folder, daemon);
        if (!path.empty() && (only == nullptr || only == &daemon)) files.push_back({&daemon, path, {}});
    }
    const ConfiguredDaemon *scheduler = daemon_called("scheduler");
    if (const std::string table = host_table_in(folder); !table.empty() && (only == nullptr || only == scheduler))
        files.push_back({scheduler, table, {"--config", "none", "--dir", folder}});
    warn_of_unread(folder);
    if (files.empty() && call.arguments.value("from"))
        return not_found_failure("there are no configuration files in " + folder,
                                 "these are scheduler.toml, grainserver.toml, backupd.toml and hosts");
    if (files.empty() && call.format == Format::table) {
        std::printf("there are no configuration files in %s: scheduler.toml, grainserver.toml, backupd.toml, hosts\n",
                    printable(folder).c_str());
        const std::string pool = call.directory + "/scheduler";
        if (!host_table_in(pool).empty() && pool != folder)
            std::printf(
                "Nothing was checked; `dcs config check --from %s` checks this pool's host table, policy and limits.\n",
                printable(pool).c_str());
    }
    return std::nullopt;
}

std::string row_of(const File &file, const Checked &checked) {
    return JsonObject()
        .add("daemon", file.daemon->name)
        .add("file", file.path)
        .add("good", checked.errors.empty())
        .add_list("errors", checked.errors, json_string)
        .add_list("warnings", checked.record.warnings, json_string)
        .text();
}

int check(const Call &call) {
    std::vector<File> files;
    if (const auto failure = choose_files(call, files)) return call.fail(*failure);
    std::vector<std::string> rows;
    std::int64_t errors = 0;
    for (const File &file : files) {
        const auto checked =
            file.arguments.empty() ? check_for_unit(*file.daemon, file.path) : check_with(*file.daemon, file.arguments);
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

struct Shown {
    std::string daemon, name, directory;
    bool running = false;
    int pid = 0;
    ConfigRecord record;
    std::vector<std::string> errors;  // of the files of one that does not run
};

std::string value_in(const ConfigRecord &record, const char *option) {
    for (const Setting &s : record.settings)
        if (s.name == option) return s.value;
    return "";
}

// Of one that runs, what it has noted counts, whatever its files say now.
void take_running(Shown &shown, std::vector<Failure> &unread) {
    if (const auto record = daemon_record(shown.directory)) shown.record = *record;
    else unread.push_back(failure_of("the configuration of " + shown.name + ", which runs", record.status()));
}

bool wanted(const Call &call, const Shown &shown) {
    if (call.arguments.words.empty()) return true;
    for (const std::string &word : call.arguments.words) {
        const ConfiguredDaemon *daemon = daemon_called(word);
        if (word == shown.name || (daemon != nullptr && daemon->name == shown.daemon)) return true;
    }
    return false;
}

// The daemons of the pool that run.
void find_running(const Call &call, std::vector<Shown> &all, std::vector<Failure> &unread) {
    for (const Daemon &daemon : Pool(call.directory).daemons()) {
        const ConfiguredDaemon *known = daemon_called(daemon.role);
        if (known == nullptr || !daemon.up) continue;
        Shown shown{known->name, daemon.name, daemon.directory, true, daemon.pid, {}, {}};
        if (!wanted(call, shown)) continue;
        take_running(shown, unread);
        all.push_back(std::move(shown));
    }
}

// Files that are wrong do not say which directory their daemon has.
bool is_set_by(const Shown &shown, const std::string &file) {
    return std::any_of(shown.record.settings.begin(), shown.record.settings.end(), [&](const Setting &s) {
        return s.origin.rfind(file + ":", 0) == 0 || s.origin.rfind(file + ".d/", 0) == 0;
    });
}

// Those that have files, unless they are among the others.
std::optional<Failure> find_configured(const Call &call, std::vector<Shown> &all, std::vector<Failure> &unread) {
    const std::string folder = absolute_path(call.arguments.value("from").value_or(configuration_folder));
    for (const ConfiguredDaemon &daemon : configured_daemons()) {
        const std::string file = config_file_in(folder, daemon);
        Shown shown{daemon.name, daemon.name, "", false, 0, {}, {}};
        if (file.empty() || !wanted(call, shown)) continue;
        const auto checked = check_file(daemon, file);
        if (!checked) return failure_of(file, checked.status());
        shown.record = checked->record;
        shown.errors = checked->errors;
        shown.directory = value_in(shown.record, "dir");
        const std::string lock = shown.directory + "/lock";
        // Without `dir` they are those of a daemon that was started with --dir.
        const auto same = [&](const Shown &other) {
            if (!shown.errors.empty()) return is_set_by(other, file);
            return shown.directory.empty() ? other.daemon == shown.daemon : other.directory == shown.directory;
        };
        if (std::any_of(all.begin(), all.end(), same)) continue;
        shown.running = !shown.directory.empty() && locks::is_held(lock);
        if (shown.running) {
            shown.pid = locks::holder_of(lock);
            take_running(shown, unread);
        }
        all.push_back(std::move(shown));
    }
    return std::nullopt;
}

std::string setting_json(const Setting &s) {
    return JsonObject().add("name", s.name).add("value", s.value).add("origin", s.origin).text();
}

std::string to_json(const Shown &shown) {
    JsonObject row;
    row.add("daemon", shown.daemon).add("name", shown.name).add("dir", shown.directory).add("running", shown.running);
    if (shown.pid > 0) row.add("pid", shown.pid);
    else row.add_raw("pid", "null");
    row.add_list("options", shown.record.settings, setting_json)
        .add_list("after_restart", shown.record.after_restart, setting_json);
    if (shown.record.refused.empty()) row.add_raw("refused", "null");
    else row.add("refused", shown.record.refused);
    return row.add_list("errors", shown.errors, json_string).text();
}

void print(const Shown &shown, bool origin) {
    const bool hidden = !shown.directory.empty() && ::access(shown.directory.c_str(), X_OK) != 0 && errno == EACCES;
    std::string state = shown.running           ? "runs"
                        : !shown.errors.empty() ? "its files have errors"
                        : hidden                ? "whether it runs, root and its account can see; its files contain"
                                                : "does not run; its files contain";
    if (shown.pid > 0) state += ", pid " + std::to_string(shown.pid);
    std::printf("%s%s%s: %s\n\n", printable(shown.name).c_str(), shown.directory.empty() ? "" : " in ",
                printable(shown.directory).c_str(), state.c_str());
    for (const std::string &error : shown.errors) std::printf("%s\n", printable(error).c_str());
    Table table = origin ? Table{"OPTION", "VALUE", "FROM"} : Table{"OPTION", "VALUE"};
    const auto add = [&](const Setting &s, const char *when) {
        std::vector<std::string> cells = {s.name, (s.value.empty() ? "-" : s.value) + when};
        if (origin) cells.push_back(s.origin);
        table.add(std::move(cells));
    };
    for (const Setting &s : shown.record.settings) {
        add(s, "");
        for (const Setting &later : shown.record.after_restart)
            if (later.name == s.name) add(later, " (after a restart)");
    }
    if (!shown.record.settings.empty()) std::printf("%s", table.text().c_str());
    if (!shown.record.refused.empty())
        std::printf("\nthe last reload failed: %s\n", printable(shown.record.refused).c_str());
}

int show(const Call &call) {
    std::vector<Shown> all;
    std::vector<Failure> unread;
    find_running(call, all, unread);
    if (const auto failure = find_configured(call, all, unread)) return call.fail(*failure);
    if (!unread.empty()) return call.fail(unread[0]);
    if (all.empty())
        return call.fail(not_found_failure(
            "no such daemon runs in the pool " + call.directory + ", and there is no configuration file of one",
            "`dcs status` shows the daemons, `dcs config check` the files"));
    Listing list(call, "dcs.config/1", "daemons");
    for (std::size_t i = 0; i < all.size(); ++i) {
        list.add(printable(all[i].name), "", to_json(all[i]));
        if (call.format != Format::table) continue;
        if (i > 0) std::printf("\n");
        print(all[i], call.arguments.has("origin"));
    }
    return list.end();
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
host table without hosts, names of hosts that differ in upper and lower case alone.
)",
    .run = check};

extern const Verb config_show_verb = {
    .noun = "config",
    .name = "show",
    .words = "[DAEMON...]",
    .summary = "show the daemons' effective options",
    .about = R"(Shows the effective options of the pool's running daemons, even if their files have changed since, and
the options in the configuration files of daemons that do not run.

Examples:
  dcs config show
  dcs config show scheduler --origin          with the origin: default, command line, or FILE:LINE
  dcs config show -o json | jq '.daemons[].options[] | select(.origin != "default")'
)",
    .options = {{"origin", 0, nullptr, no_value, "show what has set each option"},
                {"from", 0, "DIR", some_text,
                 "the directory of scheduler.toml, grainserver.toml and backupd.toml (default: /etc/dcs)"}},
    .notes = R"(DAEMON is scheduler, backupd, grainserver, or the name of a server of the pool. Options that take effect
only after a restart are marked, and so are the errors of the last reload. Daemons record their options in their
directories: those that you may not read are not shown.
)",
    .run = show};

}  // namespace dcs::commands
