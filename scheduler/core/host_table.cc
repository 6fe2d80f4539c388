// The host table, at the start and whenever it is reread.
#include "base/planted.h"
#include "scheduler/core/decisions.h"

namespace dcs::core {
namespace {

void update_host(Draft &d, HostId id, const HostConfig &table) {
    Host &host = d.host(id);
    const bool returns = !host.configured;
    host.table = {table, host.table};
    host.configured = true;
    if (returns) host.status = HostStatus::unknown;
    if (host.status == HostStatus::unknown) host.last_contact = d.now;  // grace
    configure_host(d, id, with_setting(table, host.setting));
}

}  // namespace

// Grains on it are offered elsewhere; if it comes into the table again before they were started
// again, they continue there, unless it was removed for good.
void leave_table(Draft &d, HostId id, bool for_good) {
    const Host &old = d.state.hosts[static_cast<std::size_t>(id)];
    Host &host = d.host(id);
    host.configured = false;
    host.status = HostStatus::dead;
    host.conn = no_connection;
    host.held_back.clear();
    if (old.conn != no_connection) {
        host.last_contact = d.now;
        if (for_good && !planted("core.removed_runs_on"))
            for (const GrainKey &key : d.state.running[static_cast<std::size_t>(id)])
                d.effect(SendServer{old.conn, wire::Withdraw{wire::wire_of(key), d.state.grain(key)->lease, true,
                                                             "its host was removed from the pool"}});
        d.effect(SendServer{old.conn, wire::Refused{"this host was removed from the scheduler's host table"}});
        d.effect(CloseConnection{old.conn});
    }
    host.usurping.clear();
    host.checked = Checked::no;
    requeue_all(d, id, MoveReason::host_removed, !for_good);
    d.event("host " + host.config->name + " is not in the host table");
}

void configure_host(Draft &d, HostId id, const HostConfig &config) {
    const Host &old = d.state.hosts[static_cast<std::size_t>(id)];
    Host &host = d.host(id);
    host.config = {config, host.table};
    if (old.conn == no_connection) return;
    // Until it knows of shorter times it is silent for as long as it was permitted.
    const HostConfig &before = *old.config;
    const bool shorter =
        config.alert < before.alert || config.limit < before.limit || config.extended < before.extended;
    if (shorter && !planted("core.shorter_at_once")) host.last_contact = d.now;
    if (old.config->interval != config.interval || old.config->slots != config.slots)
        d.send(id, configuration(d.state, config));
    if (config.slots == 0)
        for (const GrainKey &key : d.state.running[static_cast<std::size_t>(id)])
            d.withdraw(id, key, d.state.grain(key)->lease, false, out_of_service);
    d.follow_up(FillHost{id});
}

void take_host_table(Draft &d, const HostTable &in) {
    std::set<std::string> listed;
    std::size_t known = d.state.hosts.size();
    Sources sources;
    BackupHost backup;
    HostClasses classes;
    for (const HostConfig &config : in.hosts) {
        if (config.source) sources[config.name] = config.users;
        if (!config.backup_at.empty()) backup = BackupHost{config.name, config.backup_at};
        if (config.names_class) classes.push_back({config.name, config.host_class});
        const bool grain_host = !config.names_class && !config.source && config.backup_at.empty();
        if (!grain_host || !listed.insert(config.name).second) continue;
        if (const HostId id = d.state.host_id(config.name); id != no_host) {
            update_host(d, id, config);
            continue;
        }
        Host host;
        host.config = host.table = config;
        host.last_contact = d.now;
        d.change(SetHost{static_cast<HostId>(known++), std::move(host)});
    }
    for (std::size_t i = 0; i < d.state.hosts.size(); ++i) {
        const Host &host = d.state.hosts[i];
        if (listed.count(host.config->name) != 0) continue;
        if (host.configured || !d.state.running[i].empty()) leave_table(d, static_cast<HostId>(i), false);
    }
    for (const auto &[host, users] : d.state.sources)
        if (sources.count(host) == 0) d.effect(ClosePrograms{host});
    if (sources != d.state.sources) d.change(SetSources{std::move(sources)});
    if (classes != d.state.classes) d.change(SetClasses{std::move(classes)});
    take_backup_host(d, backup);
    // What could run nowhere may have a host now, and the other way round.
    wake_all_waiters(d);
    d.event("host table with " + std::to_string(listed.size()) + " hosts read");
}

}  // namespace dcs::core
