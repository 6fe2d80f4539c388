// The passive backup: what it took while the scheduler was away is taken in before its servers are believed.
// A server says at its first call up to which of its reports the backup has acknowledged; if they are not here, the
// call waits. Late or repeated reports are judged like any other: leases and sequence numbers decide.

#include "base/planted.h"
#include "scheduler/core/decisions.h"

namespace dcs::core {
namespace {

HandedOver handed_over_of(const State &state, const std::string &host) {
    const auto it = state.handed_over.find(host);
    return it == state.handed_over.end() ? HandedOver{} : it->second;
}

// As long as it brings something, it is waited for.
void heard(Draft &d, BackupLink link) {
    if (link.patience != Instant::never()) link.patience = d.now + backup_patience;
    if (!(link == d.state.backup)) d.change(SetBackup{link});
}

void decide_anew(Draft &d, const std::string &host, const WaitingCall &call, bool waited) {
    ServerFirstCall again = *call;
    again.waited = waited;
    d.change(SetWaitingCall{host, nullptr});
    d.follow_up(std::move(again));
}

}  // namespace

void backup_came(Draft &d, const BackupCame &in) {
    if (Status s = check_backup(d.state, in.certified); !s) {
        d.effect(SendServer{in.conn, wire::Refused{s.text}});
        d.effect(CloseConnection{in.conn});
        return d.event("audit: a backup was refused: " + s.text);
    }
    const BackupLink &known = d.state.backup;
    if (known.conn != no_connection && known.conn != in.conn) d.effect(CloseConnection{known.conn});
    heard(d, BackupLink{in.conn, in.store, known.patience, in.certified.host});
    if (!in.certified.host.empty()) d.effect(SendServer{in.conn, member_keys(d.state)});
    d.effect(SendServer{in.conn, wire::BackupKnown{d.state.epoch}});
    d.event("the backup is connected" + (in.certified.host.empty() ? "" : ", host " + in.certified.host));
}

void hand_over(Draft &d, const ReportHandedOver &in) {
    const BackupLink &link = d.state.backup;
    if (link.conn != in.conn || in.conn == no_connection) return;
    heard(d, link);
    const HandedOver upto{link.store, in.number};
    const HandedOver before = handed_over_of(d.state, in.host);
    const bool seen = before.covers(upto);
    const HostId id = d.state.host_id(in.host);
    // Reports of an unknown host are useless.
    if (!seen && in.report && id != no_host) judge_report(d, ServerReport{no_connection, id, in.report}, true);
    if (!before.covers(upto)) d.change(SetHandedOver{in.host, upto});
    d.effect(SendServer{in.conn, wire::HandOverTaken{in.host, in.number}});
    const auto waiting = d.state.waiting_calls.find(in.host);
    if (waiting != d.state.waiting_calls.end() && upto.covers(waiting->second->promised))
        decide_anew(d, in.host, waiting->second, false);
}

void backup_closed(Draft &d, ConnId conn) {
    for (const auto &[host, call] : d.state.waiting_calls) {
        if (call->conn != conn) continue;
        d.change(SetWaitingCall{host, nullptr});
        const HostId id = d.state.host_id(host);
        if (const Host *known = d.state.host(id); known && known->conn == no_connection) d.host(id).left = conn;
    }
    if (d.state.backup.conn != conn) return;
    d.change(SetBackup{BackupLink{no_connection, 0, d.state.backup.patience, {}}});
    d.event("the backup is disconnected");
}

bool waits_for_backup(Draft &d, HostId id, const ServerFirstCall &in) {
    if (in.promised.number == 0 || planted("core.believe_before_backup")) return false;
    const std::string &name = in.call->host;
    if (handed_over_of(d.state, name).covers(in.promised)) return false;
    if (d.state.host(id)->given_up.covers(in.promised)) return false;
    if (in.waited) {
        d.host(id).given_up = in.promised;
        d.event("the backup did not hand over its reports of " + name + " in time; continuing without them");
        return false;
    }
    BackupLink link = d.state.backup;
    if (link.patience == Instant::never()) {
        link.patience = d.now + backup_patience;
        d.change(SetBackup{link});
    }
    d.change(SetWaitingCall{name, std::make_shared<const ServerFirstCall>(in)});
    d.event("host " + name + " is back; the backup holds reports of it, which are recorded first");
    return true;
}

void wait_no_longer(Draft &d) {
    if (d.now < d.state.backup.patience) return;
    BackupLink link = d.state.backup;
    link.patience = Instant::never();
    d.change(SetBackup{link});
    for (const auto &[host, call] : d.state.waiting_calls) decide_anew(d, host, call, true);
}

}  // namespace dcs::core
