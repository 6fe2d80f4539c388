// dcs status: the daemons of the pool and what they have to do.
#include <cstdio>
#include <unistd.h>
#include <utility>

#include "base/known_words.h"
#include "commands/dcs/query/scheduler.h"
#include "commands/dcs/frame/call.h"
#include "client/call.h"
#include "client/remote.h"
#include "commands/dcs/frame/pool_directory.h"
#include "commands/dcs/query/copy_state.h"
#include "stop_daemons.h"
#include "commands/dcs/frame/start_hint.h"
#include "commands/dcs/frame/table.h"

namespace dcs::commands {
namespace {

const char *state_of(const Daemon &daemon) { return daemon.up ? "up" : daemon.known ? "down" : "unknown"; }

// What its last reading of its configuration has come to, as far as it is not what was wanted.
std::optional<ConfigRecord> troubled_record(const Daemon &daemon) {
    const auto record = daemon.up ? daemon_record(daemon.directory) : fail(Code::not_found, "");
    if (!record || (record->refused.empty() && record->after_restart.empty())) return std::nullopt;
    return *record;
}

void print_trouble(const Daemon &daemon) {
    const auto record = troubled_record(daemon);
    if (!record) return;
    if (!record->refused.empty())
        std::printf("%s keeps its old configuration: %s\n", daemon.name.c_str(), printable(record->refused).c_str());
    std::string names;
    for (const Setting &s : record->after_restart) names += (names.empty() ? "" : ", ") + s.name;
    if (!names.empty())
        std::printf("%s applies a change of %s after a restart\n", daemon.name.c_str(), printable(names).c_str());
}

std::string daemon_json(const Daemon &daemon) {
    JsonObject row;
    row.add("role", daemon.role).add("name", daemon.name);
    if (daemon.up && daemon.pid > 0) row.add("pid", daemon.pid);
    else row.add_raw("pid", "null");
    row.add("state", state_of(daemon));
    if (const auto record = troubled_record(daemon)) {
        if (!record->refused.empty()) row.add("configuration_refused", record->refused);
        row.add_list("needs_restart_for", record->after_restart, [](const Setting &s) { return json_string(s.name); });
    }
    return row.text();
}

// Null: there is none, or it is a process of this host without a copy of the store.
std::string backup_json(const wire::SystemRow &system) {
    if (system.backups.empty()) return "null";
    const wire::BackupRow &row = system.backups[0];
    JsonObject json;
    if (row.name.empty()) json.add_raw("host", "null").add_raw("state", "null");
    else json.add("host", row.name).add("state", row.state);
    if (row.mode.empty()) return json.add_raw("copy", "null").text();
    return json
        .add_raw("copy", JsonObject().add("mode", row.mode).add("state", row.copy).add("lag_s", row.lag_s).text())
        .text();
}

// The scheduler's disk is full, or nearly: most calls are refused. A copy of its store was promoted: its work is lost;
// of the hosts that say so, the first.
std::vector<wire::ProblemRow> grave_problems() {
    auto reply = ask_any<wire::DoctorReply>(wire::Doctor{});
    std::vector<wire::ProblemRow> rows;
    bool replaced = false;
    for (wire::ProblemRow &row : reply ? reply->problems : rows) {
        const bool disk = row.entity == "backing store" && !row.affects.empty();
        const bool here = row.problem.starts_with(refuses_scheduler_words) && !std::exchange(replaced, true);
        if (disk || here) rows.push_back(std::move(row));
    }
    return rows;
}

void print_table(const std::string &where, const std::vector<Daemon> &daemons, const wire::SystemRow *info) {
    const std::string other =
        other_pool(where);  // a pool of the user's own comes before it, also one that was forgotten
    std::printf("pool %s\n%s\n", where.c_str(), other.empty() ? "" : ("your own; " + other + "\n").c_str());
    Table table{"DAEMON", "NAME", ">PID", "*STATE"};
    for (const Daemon &daemon : daemons)
        table.add({daemon.role, daemon.name, daemon.up && daemon.pid > 0 ? std::to_string(daemon.pid) : "-",
                   state_of(daemon)});
    if (!daemons.empty()) std::printf("%s\n", table.text().c_str());
    for (const Daemon &daemon : daemons) print_trouble(daemon);
    if (info == nullptr) return;
    for (const wire::BackupRow &backup : info->backups)
        if (!backup.name.empty()) std::printf("backup    %s\n", printable(backup_text(backup)).c_str());
    std::printf("hosts     %d of %d active\n", info->hosts_active, info->hosts);
    const SessionsAnswer all = sessions_of_all_users();
    std::printf("sessions  %s\n", all.failure ? (std::to_string(info->sessions_active) + " not closed").c_str()
                                              : open_sessions_text(all.sessions).c_str());
    std::printf("grains    %lld ready, %lld running\n", static_cast<long long>(info->ready),
                static_cast<long long>(info->running));
    std::printf("scheduler %s, up %s, epoch %llu, turn %llu\n", info->version.c_str(),
                whole_seconds_text(info->up_s).c_str(), static_cast<unsigned long long>(info->epoch),
                static_cast<unsigned long long>(info->turn));
    for (const wire::ProblemRow &row : grave_problems())
        std::printf("problem   %s\n",
                    printable(row.entity + ": " + row.problem + ": " + row.affects + "; " + row.advice).c_str());
}

int show_status(const Call &call) {
    const Pool pool(call.directory);
    const client::RemotePtr elsewhere = client::adopt_remote(this_pool()) ? this_pool().remote() : nullptr;
    std::vector<Daemon> daemons;
    if (!elsewhere) daemons = pool.daemons();
    for (Daemon &daemon : daemons) daemon.up = daemon.up && (daemon.pid == 0 || !facts_of(daemon.pid).dying);
    // Whose lock can be read and is free is down for certain: no need to wait for an answer. Where members of a group
    // call they cannot read it; who answers is up.
    const bool down = !daemons.empty() && !daemons[0].up && ::access(daemons[0].lock.c_str(), R_OK) == 0;
    Info info;
    const Status asked = down ? fail(Code::unreachable, "") : info.ask(wire::QueryType::system);
    if (asked && !daemons.empty()) daemons[0].up = true;
    Failure failure;
    if (down)
        failure = {exits::unreachable, "unreachable", "the scheduler of " + pool.directory() + " is down",
                   start_hint(pool.directory())};
    else if (!asked) failure = waits_for_copy(pool.directory()).value_or(call_failure("the scheduler's status", asked));
    if (call.format == Format::json) {
        JsonObject json;
        json.add("schema", "dcs.status/1")
            .add(elsewhere ? "scheduler" : "dir", elsewhere ? elsewhere->address : pool.directory())
            .add_list("daemons", daemons, daemon_json);
        const std::string page = elsewhere ? "" : pool.page_url();
        json.add_raw("page", page.empty() ? "null" : json_string(page)).add("reachable", bool(asked));
        if (asked)
            json.add_members(json_of_system(info.system, sessions_of_all_users()))
                .add_raw("backup", backup_json(info.system))
                .add_list("problems", grave_problems(), row_json);
        std::printf("%s\n", json.text().c_str());
    } else if (call.format == Format::name) {
        for (const Daemon &daemon : daemons)
            if (daemon.up) std::printf("%s\n", daemon.name.c_str());
    } else {
        print_table(elsewhere ? "at " + elsewhere->address : pool.directory(), daemons, asked ? &info.system : nullptr);
        const std::string page = elsewhere ? "" : pool.page_url();
        if (!page.empty()) std::printf("page      %s\n", page.c_str());
    }
    return asked ? exits::ok : call.fail(failure);
}

}  // namespace

extern const Verb status_verb = {
    .noun = "",
    .name = "status",
    .summary = "show the pool's daemons and their work",
    .about = R"(Shows the daemons of the pool, and how many hosts, sessions and grains there are.

Examples:
  dcs status
  dcs status -o json | jq '.daemons[] | select(.state == "down")'
)",
    .notes = R"(Daemons are shown even if the scheduler does not answer; the exit code is then 5. Their states are
up, down, and unknown (you have no permission to read the daemon's files). A scheduler that answers is up. Of a backup
on another host the line `backup` has what the scheduler knows: whether it is connected, and how far its copy of the
store is. A line `problem` says that the disk of the scheduler's state is full or nearly so, or that a copy of it was
promoted elsewhere, and what to do; `dcs doctor` has all problems. In JSON, sessions_done are those that are not closed,
but have nothing left to do; problems has the same rows as the lines.
Grain servers that `dcs up` did not start are not shown: use `dcs host ls`.
)",
    .run = show_status};

}  // namespace dcs::commands
