#include "scheduler/shell/lost_hosts.h"

#include <algorithm>
#include <set>

namespace dcs::shell {
namespace {

constexpr std::size_t names_shown = 3;  // of the hosts

bool runs_grains(const core::HostConfig &line) { return !line.names_class && !line.source && line.backup_at.empty(); }

std::string some_of(const std::vector<std::string> &names) {
    std::string text;
    for (std::size_t i = 0; i < std::min(names.size(), names_shown); ++i) text += (i > 0 ? ", " : "") + names[i];
    return text + (names.size() > names_shown ? " and " + std::to_string(names.size() - names_shown) + " more" : "");
}

}  // namespace

bool has_grain_host(const std::vector<core::HostConfig> &table) {
    return std::any_of(table.begin(), table.end(), runs_grains);
}

Status keeps_a_host(const core::State &state, const std::vector<core::HostConfig> &table, const std::string &file) {
    std::set<std::string> listed;
    for (const core::HostConfig &line : table)
        if (runs_grains(line)) listed.insert(line.name);
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
    if (!cuts_off && (present.empty() || !listed.empty())) return Status::ok();
    return fail(Code::invalid,
                file + (listed.empty() ? " lists no host that runs grains" : " lists none of the connected hosts") +
                    ", and would remove " + some_of(listed.empty() ? present : connected) +
                    ": put their lines back, or remove each on purpose with `dcs host rm NAME`");
}

}  // namespace dcs::shell
