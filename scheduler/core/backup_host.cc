// A passive backup on a host of its own: its line in the host table, its certificate, and who learns of it. Servers
// have to know its door before they need it, the backup whose servers are the pool's, while the scheduler is away.
#include "base/limits.h"
#include "scheduler/core/decisions.h"

namespace dcs::core {
namespace {

std::string bytes_of(const TokenHash &hash) { return std::string(hash.begin(), hash.end()); }

}  // namespace

// None as long as it has not joined.
wire::BackupPlace backup_place(const State &state) {
    const auto key = state.trust.backups.find(state.backup_host.name);
    if (key == state.trust.backups.end()) return {};
    return {state.backup_host.name, state.backup_host.address, bytes_of(key->second)};
}

wire::MemberKeys member_keys(const State &state) {
    wire::MemberKeys keys;
    for (const auto &[host, key] : state.trust.keys)
        if (in_table(state, HostRole::server, host) && keys.members.size() < limits::connections)
            keys.members.push_back({host, bytes_of(key)});
    return keys;
}

void end_backup(Draft &d, const std::string &host) {
    const BackupLink &link = d.state.backup;
    if (link.conn == no_connection || link.host != host) return;
    d.effect(SendServer{link.conn, wire::Refused{"host " + host + " is no longer the backup of this pool"}});
    d.effect(CloseConnection{link.conn});
}

void take_backup_host(Draft &d, const BackupHost &host) {
    const BackupHost &known = d.state.backup_host;
    const bool changed = !(host == known);
    if (changed && !known.name.empty() && known.name != host.name) end_backup(d, known.name);
    if (changed) d.change(SetBackupHost{host});
    if (changed || !known.name.empty()) d.follow_up(TellOfBackup{changed});
}

void tell_of_backup(Draft &d, const TellOfBackup &in) {
    const BackupLink &link = d.state.backup;
    if (link.conn != no_connection && !link.host.empty()) d.effect(SendServer{link.conn, member_keys(d.state)});
    if (!in.place) return;
    for (const auto &[conn, id] : d.state.host_of_conn)
        if (d.state.trust.keys.count(d.state.host(id)->config->name) != 0)
            d.effect(SendServer{conn, backup_place(d.state)});
}

}  // namespace dcs::core
