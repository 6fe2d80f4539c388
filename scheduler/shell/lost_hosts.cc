#include "scheduler/shell/lost_hosts.h"

#include <algorithm>
#include <map>
#include <set>

#include "daemon/log.h"
#include "scheduler/core/decisions.h"

namespace dcs::shell {
namespace {

constexpr std::size_t names_shown = 3, names_logged = 100;  // of the hosts

bool runs_grains(const core::HostConfig &line) { return !line.names_class && !line.source && line.backup_at.empty(); }

std::set<std::string> grain_hosts(const std::vector<core::HostConfig> &table) {
    std::set<std::string> names;
    for (const core::HostConfig &line : table)
        if (runs_grains(line)) names.insert(line.name);
    return names;
}

std::string some_of(const std::vector<std::string> &names, std::size_t shown = names_shown) {
    std::string text;
    for (std::size_t i = 0; i < std::min(names.size(), shown); ++i) text += (i > 0 ? ", " : "") + names[i];
    return text + (names.size() > shown ? " and " + std::to_string(names.size() - shown) + " more" : "");
}

Status keeps_busy_hosts(const core::State &state, const std::set<std::string> &listed, const std::string &file) {
    std::vector<std::string> busy;
    for (std::size_t i = 0; i < state.hosts.size(); ++i) {
        const core::Host &host = state.hosts[i];
        if (host.configured && listed.count(host.config->name) == 0 && !state.running[i].empty())
            busy.push_back(host.config->name + " (" + std::to_string(state.running[i].size()) + ")");
    }
    if (busy.empty()) return Status::ok();
    return fail(Code::refused,
                file + " no longer lists hosts that run grains, which would start again elsewhere: " + some_of(busy) +
                    ": put their lines back, drain them first (`dcs host drain NAME`), or let the grains "
                    "move by `dcs reload --move-grains`");
}

Status keeps_backup(const core::State &state, const std::vector<core::HostConfig> &table, const std::string &file) {
    const std::string &name = state.backup_host.name;
    const auto keeps = [&](const core::HostConfig &line) { return !line.backup_at.empty(); };
    if (name.empty() || std::any_of(table.begin(), table.end(), keeps)) return Status::ok();
    const bool has_other_roles = std::ranges::any_of(table, [&](const auto &line) { return line.name == name; });
    return fail(Code::refused,
                file + " no longer lists the backup, " + name +
                    ", so nothing would keep a copy of the store or reports while the scheduler is away: "
                    "put its line back, or remove it on purpose with " +
                    (has_other_roles ? "`dcs reload --move-grains`" : "`dcs host rm " + name + "`"));
}

std::string alike(const std::set<std::string> &names) {
    std::map<std::string, std::string> known;
    for (const std::string &name : names) {
        const auto [first, fresh] = known.emplace(core::lowered(name), name);
        if (!fresh)
            return "it lists " + first->second + " and " + name + ", whose names differ in upper and lower case alone";
    }
    return "";
}

}  // namespace

std::string alike_names(const std::vector<core::HostConfig> &table) { return alike(grain_hosts(table)); }

std::optional<wire::ProblemRow> alike_names(const core::State &state) {
    std::set<std::string> names;
    for (const core::Host &host : state.hosts)
        if (host.configured) names.insert(host.config->name);
    const std::string problem = alike(names);
    if (problem.empty()) return {};
    return wire::ProblemRow{"host table", "", problem, "if they are one machine, it runs twice the grains",
                            "take one of the lines out of it, or give that host another name, and run `dcs reload`"};
}

bool has_grain_host(const std::vector<core::HostConfig> &table) {
    return std::any_of(table.begin(), table.end(), runs_grains);
}

Status keeps_hosts(const core::State &state, const std::vector<core::HostConfig> &table, const std::string &file,
                   bool move_grains) {
    const std::set<std::string> listed = grain_hosts(table);
    std::vector<std::string> present, connected;
    bool one_stays = false;
    for (const core::Host &host : state.hosts) {
        if (!host.configured) continue;
        present.push_back(host.config->name);
        if (host.conn == no_connection) continue;
        connected.push_back(host.config->name);
        one_stays = one_stays || listed.count(host.config->name) != 0;
    }
    const bool cuts_off = !connected.empty() && !one_stays;
    if (!cuts_off && (present.empty() || !listed.empty())) {
        if (move_grains) return Status::ok();
        const Status backup = keeps_backup(state, table, file);
        return backup ? keeps_busy_hosts(state, listed, file) : backup;
    }
    return fail(Code::invalid,
                file + (listed.empty() ? " lists no host that runs grains" : " lists none of the connected hosts") +
                    ", and would remove " + some_of(listed.empty() ? present : connected) +
                    ": put their lines back, or remove each on purpose with `dcs host rm NAME`");
}

std::string changes_of_hosts(const core::State &state, const std::vector<core::HostConfig> &table) {
    std::vector<std::string> added, removed, changed;
    std::set<std::string> present;
    for (std::size_t i = 0; i < state.hosts.size(); ++i) {
        const core::Host &host = state.hosts[i];
        if (!host.configured) continue;
        const std::string &name = host.config->name;
        present.insert(name);
        const auto line = std::find_if(table.begin(), table.end(),
                                       [&](const core::HostConfig &l) { return runs_grains(l) && l.name == name; });
        const std::size_t grains = state.running[i].size();
        if (line == table.end())
            removed.push_back(name + (grains == 0 ? "" : " (" + std::to_string(grains) + " running)"));
        else if (!(*line == *host.table)) changed.push_back(name);
    }
    for (const std::string &name : grain_hosts(table))
        if (present.count(name) == 0) added.push_back(name);
    std::string text;
    for (const auto &[names, what] : {std::pair{&added, "added "}, {&removed, "removed "}, {&changed, "changed "}})
        if (!names->empty()) text += (text.empty() ? "" : "; ") + std::string(what) + some_of(*names, names_logged);
    return text;
}

void log_reread(const std::string &hosts_file, const std::string &policy_file, const std::string &of_hosts,
                const std::string &of_rules) {
    log_info("host table " + hosts_file + " and policy " + policy_file + " reread");
    if (!of_hosts.empty()) log_audit("audit: the host table was reread: " + of_hosts);
    if (!of_rules.empty()) log_audit("audit: policy and limits were reread: " + of_rules);
}

Status keeps_working_hosts(const core::State &state, const std::vector<core::HostConfig> &table,
                           const std::string &file, std::string &warning) {
    const std::set<std::string> listed = grain_hosts(table);
    std::vector<std::string> lost;
    std::size_t grains = 0;
    for (std::size_t i = 0; i < state.hosts.size(); ++i) {
        if (state.running[i].empty() || listed.count(state.hosts[i].config->name) != 0) continue;
        lost.push_back(state.hosts[i].config->name);
        grains += state.running[i].size();
    }
    if (lost.empty()) return Status::ok();
    const std::string where = (grains == 1 ? "1 grain has" : std::to_string(grains) + " grains have") +
                              std::string(" been started on ") + some_of(lost);
    if (listed.empty())
        return fail(Code::refused, file + " lists no host that runs grains, but " + where +
                                       ": put their lines back and start the scheduler; `dcs host rm NAME` then "
                                       "removes a host on purpose");
    warning = file + " no longer lists " + (lost.size() == 1 ? "a host that runs" : "hosts that run") +
              " grains: " + where +
              "; they are started again on other hosts. If that is a mistake, put the lines back and run `dcs "
              "reload`: grains that were not started elsewhere by then continue";
    return Status::ok();
}

}  // namespace dcs::shell
