// Hosts that have been silent for long. If such a host runs grains and has addresses that can be
// probed, it is probed for signs of life before its grains are moved.
#include <algorithm>

#include "base/planted.h"
#include "scheduler/core/decisions.h"

namespace dcs::core {
namespace {

// For the answer to a probe, which itself waits 2 s.
constexpr Duration probe_patience = seconds(10);
constexpr Duration a_moment{1};
// A killed grain server gets at least this long to be restarted: then it continues with its grains.
constexpr Duration restart_patience = seconds(10);

// A server that is known to have ended gets less time than a silent one; but a restart takes a moment, and one that
// calls rarely is restarted slowly. A pause of our own counts for none: it moves the last contact.
Instant end_of_ended(const Host &host) {
    if (host.ended == Instant::never()) return Instant::never();
    return std::max(host.ended, host.last_contact) + std::max(host.config->interval, restart_patience);
}

bool has_addresses(const HostConfig &config) {
    return !config.check.empty() || !config.file_server.empty() || !config.gateway.empty();
}

void declare_dead(Draft &d, HostId id, const std::string &why) {
    const Host &old = d.state.hosts[static_cast<std::size_t>(id)];
    if (old.conn != no_connection) d.effect(CloseConnection{old.conn});
    Host &host = d.host(id);
    host.status = HostStatus::dead;
    host.conn = no_connection;
    host.held_back.clear();
    host.usurping.clear();
    host.checked = Checked::no;
    host.ended = Instant::never();
    requeue_all(d, id, MoveReason::host_dead);
    d.event("host " + host.config->name + " is dead: " + why);
}

void call_delinquent(Draft &d, HostId id) {
    Host &host = d.host(id);
    if (host.status == HostStatus::delinquent) return;
    host.status = HostStatus::delinquent;
    d.event("host " + host.config->name + " is delinquent");
}

void look_after(Draft &d, HostId id) {
    Host &host = d.host(id);
    const HostConfig &config = host.config;
    host.checked = Checked::asked;
    host.checked_at = d.now;
    host.probe += 1;
    d.effect(ProbeHost{id, host.probe, config.check, config.file_server, config.gateway});
    d.event("host " + config.name + " is overdue; probing its addresses");
}

void overdue(Draft &d, HostId id) {
    const Host &host = d.state.hosts[static_cast<std::size_t>(id)];
    const HostConfig &config = host.config;
    if (d.state.waiting_calls.contains(config.name) && !planted("core.waiting_is_silent")) {
        d.host(id).last_contact = d.now;  // it has called: its call waits for what the backup has of it
        return;
    }
    if (d.now > end_of_ended(host)) return declare_dead(d, id, "its server ended and was not restarted");
    if (d.now <= host.last_contact + config.limit) {
        d.host(id).checked = Checked::no;  // its limit was raised since
        return call_delinquent(d, id);
    }
    if (host.checked == Checked::asked)  // the deadline was its answer's
        return declare_dead(d, id, "probing it gave no answer");
    const bool runs_grains = !d.state.running[static_cast<std::size_t>(id)].empty();
    const bool may_wait = d.now <= host.last_contact + config.extended;
    if (!runs_grains || !has_addresses(config) || !may_wait) return declare_dead(d, id, "it was silent for its limit");
    call_delinquent(d, id);
    look_after(d, id);
}

}  // namespace

namespace {

Instant deadline_of_silent(const Host &host) {
    const HostConfig &config = host.config;
    if (host.checked == Checked::asked) return host.checked_at + probe_patience + a_moment;
    if (host.checked == Checked::alive)
        return std::min(host.last_contact + config.extended, host.checked_at + config.limit) + a_moment;
    if (host.status == HostStatus::delinquent) return host.last_contact + config.limit + a_moment;
    return host.last_contact + std::min(config.alert, config.limit) + a_moment;
}

}  // namespace

Instant deadline_of(const Host &host) {
    if (!host.configured || host.status == HostStatus::dead) return Instant::never();
    const Instant silent = deadline_of_silent(host), ended = end_of_ended(host);
    return ended == Instant::never() ? silent : std::min(silent, ended + a_moment);
}

// Its grains may run on under their launcher, and a restarted server continues with them; so this alone moves
// nothing. Once for each server that dies on this host, so it may iterate over all hosts.
void server_ended(Draft &d, const ServerEnded &in) {
    for (std::size_t i = 0; i < d.state.hosts.size(); ++i) {
        const Host &known = d.state.hosts[i];
        const auto call = d.state.waiting_calls.find(known.config->name);
        const bool called = call != d.state.waiting_calls.end() && call->second->conn == in.conn;
        const bool away = known.conn == no_connection;
        const bool its = known.conn == in.conn || (away && (called || known.left == in.conn));
        if (!its || known.status == HostStatus::dead) continue;
        if (called) d.change(SetWaitingCall{known.config->name, nullptr});
        Host &host = d.host(static_cast<HostId>(i));
        host.ended = d.now;
        d.event("host " + host.config->name + ": the process of its server has ended");
    }
}

void lose_hosts(Draft &d) {
    for (const auto &[deadline, id] : d.state.deadlines) {
        if (deadline > d.now) return;
        overdue(d, id);
    }
}

// It could be alive if it answers, or if what lies between us and it, or what it hangs on, does not.
void probe_result(Draft &d, const ProbeResult &in) {
    const Host *known = d.state.host(in.host);
    if (!known || known->checked != Checked::asked || known->probe != in.probe) return;
    const bool could_be_alive = in.check == true || in.file_server == false || in.gateway == false;
    if (!could_be_alive) return declare_dead(d, in.host, "its addresses do not answer");
    Host &host = d.host(in.host);
    host.checked = Checked::alive;
    d.event("host " + host.config->name + " may be alive; its grains wait");
}

}  // namespace dcs::core
