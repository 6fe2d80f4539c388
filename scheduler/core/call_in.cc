// Grain servers that call: for the first time on a connection, with the grains that they hold,
// and then each interval.
#include <algorithm>
#include <utility>

#include "base/confinement.h"
#include "base/planted.h"
#include "scheduler/core/decisions.h"

namespace dcs::core {
namespace {

void turn_away(Draft &d, const ServerFirstCall &in, const std::string &text) {
    d.effect(SendServer{in.conn, wire::Refused{text}});
    d.effect(CloseConnection{in.conn});
    d.event(server_refused + in.call->host + (in.address.empty() ? "" : " at " + in.address) + ": " + text);
}

// Claims above this are no leases of ours (numbers rise with each session that is removed: a million a day reach it in
// five years); believing them would use up the numbers.
constexpr Incarnation highest_fence = Incarnation{1} << 31;
// Grains beyond its slots that are withdrawn from a server at once; it learns the rest at its next first call. A host
// has that many if its slots were made fewer, or its grains were given to others, while it was away.
constexpr std::size_t withdrawn_at_once = 1024;

// The lease, or one that could count again if the host is soon in the table as before (take_back).
bool may_count(const Draft &d, const wire::HeldGrain &held, HostId id) {
    const Host *host = d.state.host(id);
    const Grain *grain = d.state.grain(wire::key_of(held.key));
    if (!host || !grain || grain->is_over()) return false;
    if (grain->lessee == id && grain->lease == held.incarnation) return true;
    return grain->course->old_lease == OldLease{id, held.incarnation} &&
           d.now < host->last_contact + host->config->limit;
}

// A server that is no longer of this pool ends what runs elsewhere by now, or will.
void end_there(Draft &d, const ServerFirstCall &in, HostId id, const std::string &why) {
    std::size_t withdrawn = 0;
    for (const wire::HeldGrain &held : in.call->held)
        if (!may_count(d, held, id) && ++withdrawn <= withdrawn_at_once)
            d.effect(SendServer{in.conn, wire::Withdraw{held.key, held.incarnation, true, why}});
}

// Still running there, still queued (all is forgiven), a copy that has run longer than the one that
// took its place, or no longer wanted there.
bool goes_on(Draft &d, const wire::HeldGrain &held, HostId id) {
    const GrainKey key = wire::key_of(held.key);
    const Grain *grain = d.state.grain(key);
    if (!grain || d.state.session(key.session)->info.status != SessionStatus::active) return false;
    if (grain->lessee == id && grain->lease == held.incarnation) {
        if (grain->status() == GrainStatus::running) return true;
        return grain->status() == GrainStatus::ready && reinstate(d, key);
    }
    return take_back(d, key, held, id);
}

void reconcile(Draft &d, const ServerFirstCall &in, HostId id) {
    std::set<GrainKey> kept;
    const auto slots = static_cast<std::size_t>(std::max(0, d.state.host(id)->config->slots));
    std::size_t withdrawn = 0;
    for (const wire::HeldGrain &held : in.call->held) {
        const GrainKey key = wire::key_of(held.key);
        if (kept.count(key) == 0 && goes_on(d, held, id)) {
            kept.insert(key);
            if (d.state.host(id)->config->slots == 0)  // set while it was away
                d.effect(SendServer{in.conn, wire::Withdraw{held.key, held.incarnation, false, out_of_service}});
            continue;
        }
        const Grain *grain = d.state.grain(key);
        const bool unheard_of = !grain || grain->incarnation < held.incarnation;
        if (unheard_of && held.incarnation <= highest_fence)
            d.host(id).fence = std::max(d.host(id).fence, held.incarnation);
        if (++withdrawn > slots + withdrawn_at_once) continue;
        const wire::Withdraw end{held.key, held.incarnation, true, "it is no longer leased to this host"};
        d.effect(SendServer{in.conn, end});
    }
    if (withdrawn > slots + withdrawn_at_once) {
        d.event("host " + d.state.host(id)->config->name + " holds " + std::to_string(withdrawn) +
                " grains that are not leased to it: some are withdrawn now, the rest at its next report");
        d.effect(CloseConnection{in.conn});
    }
    const std::set<GrainKey> &believed = d.state.running[static_cast<std::size_t>(id)];
    for (auto it = believed.rbegin(); it != believed.rend(); ++it) {
        if (kept.count(*it) != 0) continue;
        note_move(d, *it, MoveReason::host_lost);
        requeue_front(d, *it, false);
    }
    for (const GrainKey &key : believed) {
        if (kept.count(key) != 0) continue;
        d.follow_up(PlaceGrain{key});
        d.event("grain " + to_text(key) + " was lost by " + d.state.host(id)->config->name);
    }
}

}  // namespace

std::string too_open_text(const Host &host) {
    return "too open: its grains are confined by " + to_words(host.confinement) + ", demanded is " +
           to_words(host.config->require_confinement);
}

void hear_from(Draft &d, HostId id) {
    Host &host = d.host(id);
    if (host.status != HostStatus::active)
        d.event("host " + host.config->name + " is active, was " + name_of(host.status));
    host.status = HostStatus::active;
    host.last_contact = host.last_call = d.now;
    host.checked = Checked::no;
}

namespace {
// True if they are other than before.
bool take_found(Draft &d, Host &host, const std::string &resources) {
    const Result<Offers> found = offers_of(resources);
    const bool first = !std::exchange(host.found_known, true);
    if (first && !found) d.event("host " + host.config->name + ": its resources are ignored: " + found.status().text);
    Shared<Offers> now(found ? *found : Offers(), host.found);
    if (now == host.found) return first;
    host.found = std::move(now);
    return true;
}
}  // namespace

namespace {
// Another server than the one that is connected: usually that one was restarted, and its end is not known yet.
bool takes_place(const Host &host, const ServerFirstCall &in) {
    return host.conn != no_connection && host.conn != in.conn && in.call->instance != host.instance;
}

// The one that is connected has so long to answer; a server that is refused asks again every 15 s.
constexpr Duration claim_patience = seconds(5), claim_forgotten = seconds(60);

// A server with the host's key, perhaps a copy of it, takes the place of none that runs. The connection of one that was
// killed is closed by its kernel before; one whose machine died does not answer. False: it has not answered.
bool hold_off(Draft &d, const ServerFirstCall &in, HostId id) {
    Host &host = d.host(id);
    const bool asked = host.claimed != Instant{} && d.now < host.claimed + claim_forgotten;
    const bool answered = host.last_contact > host.claimed;
    if (asked && !answered && d.now >= host.claimed + claim_patience) return false;
    if (!asked || answered) {
        host.claimed = d.now;
        d.effect(SendServer{host.conn, configuration(d.state, host.config)});  // it answers with a call-in
    }
    const std::string name = host.config->name, at = in.address.empty() ? "" : " at " + in.address;
    if (asked && answered && (host.contested == Instant{} || d.now >= host.contested + claim_forgotten))
        d.event("audit: two grain servers have the key of host " + name + ": the one that is connected" +
                (host.address.empty() ? "" : " at " + host.address) + " answers, another" + at + " is refused");
    if (asked && answered) host.contested = d.now, host.contested_from = in.address;
    turn_away(d, in,
              "another grain server is connected under the name " + name +
                  ", and keeps it as long as it answers: end one of the two, or, if this is a copy of its machine, let "
                  "it join with a key and a name of its own (dcs token create --host NAME, dcs host join --new-key)");
    return true;
}
}  // namespace

void first_call(Draft &d, const ServerFirstCall &in) {
    const wire::FirstCall &call = *in.call;
    const HostId id = d.state.host_id(call.host);
    if (Status s = check_certified(d.state, in.certified, call.host); !s) {
        if (d.state.host(id))
            d.host(id).refusal =
                Refusal{s.text, in.address, false, d.state.trust.removed.count(in.certified.key) != 0, d.now};
        if (in.certified.host == call.host) end_there(d, in, id, s.text);
        return turn_away(d, in, s.text);
    }
    const Host *known = d.state.host(id);
    if (!known || !known->configured) {
        const std::string why = "this host is not in the scheduler's host table: add it there and reload";
        // One of which nothing is known may be of another pool.
        if (known) {
            d.host(id).refusal = Refusal{why, in.address, false, false, d.now};
            end_there(d, in, id, "its host is no longer in the scheduler's host table");
        }
        return turn_away(d, in, why);
    }
    if (takes_place(*known, in) && !planted("core.copy_takes_place") && hold_off(d, in, id)) return;
    hear_from(d, id);
    if (waits_for_backup(d, id, in)) return;
    if (known->conn != no_connection && known->conn != in.conn) d.effect(CloseConnection{known->conn});
    Host &host = d.host(id);
    host.conn = in.conn;
    host.instance = call.instance;
    host.claimed = {};
    host.refusal = {};
    host.ended = Instant::never();
    host.binary_class = call.binary_class;
    host.form = in.form;
    host.address = in.address;
    host.version.clear();  // its first call-in states it
    host.warning.clear();
    host.ending = 0;
    host.confinement = call.confinement;
    host.found = {};  // its first call-in states them
    host.found_known = false;
    host.free_memory_kb = -1;
    host.total_memory_kb = 0;
    host.pace = Pace();
    host.usurping.clear();  // but it stays shut until its next call-in says otherwise
    host.missing.clear();   // a restart may follow a repair
    if (too_open(host)) d.event("host " + host.config->name + " gets no grains: " + too_open_text(host));
    d.effect(SendServer{in.conn, configuration(d.state, host.config)});
    if (!in.certified.host.empty()) d.effect(SendServer{in.conn, backup_place(d.state)});
    reconcile(d, in, id);
    d.follow_up(FillHost{id});
}

// Any peer can claim a name, so it changes nothing but what operators read of a host that does not call.
void server_refused_at_door(Draft &d, const ServerRefused &in) {
    const HostId id = d.state.host_id(in.host);
    if (d.state.host(id)) d.host(id).refusal = Refusal{in.why, in.address, in.clock, false, d.now};
}

wire::Configure configuration(const State &state, const HostConfig &config) {
    return wire::Configure{config.interval.seconds(), config.slots, state.epoch};
}

void call_in(Draft &d, const ServerCallIn &in) {
    if (const Host *known = d.state.host(in.host); !known || known->conn != in.conn) return;
    hear_from(d, in.host);
    Host &host = d.host(in.host);
    host.load = in.call.load;
    host.version = in.call.version;
    host.free_memory_kb = std::clamp<std::int64_t>(in.call.free_memory_kb, 0, std::int64_t{1} << 50);
    std::int64_t total = std::clamp<std::int64_t>(in.call.memory_kb, 0, std::int64_t{1} << 50);
    if (total > 0) total = std::max(total, host.free_memory_kb);
    const bool other_memory = std::exchange(host.total_memory_kb, total) != total;
    const bool other_limit = host.limits.memory_mb != in.call.limits.memory_mb;
    host.limits = in.call.limits;
    if (take_found(d, host, in.call.resources) || other_memory ||
        other_limit)  // what could run here may not fit it, or fit now
        wake_all_waiters(d);
    const std::string shut = in.call.shut.substr(0, limits::move_detail_bytes);
    if (host.shut.empty() != shut.empty())
        d.event("host " + host.config->name +
                (shut.empty() ? " accepts grains again" : " accepts no grains now: " + shut));
    host.shut = shut;
    host.warning = in.call.warning;
    host.ending = std::clamp(in.call.ending, 0, static_cast<std::int32_t>(limits::held_grains));
    d.follow_up(FillHost{in.host});
    if (in.call.boundary) d.follow_up(Usurp{in.host});
}

// A broken connection moves no grain: the host has its whole limit to come back.
void connection_closed(Draft &d, const ConnectionClosed &in) {
    if (in.conn == no_connection) return;
    backup_closed(d, in.conn);
    if (const HostId id = d.state.host_of(in.conn); id != no_host) {
        d.host(id).left = in.conn;
        d.host(id).conn = no_connection;
    }
    const auto parked = d.state.waiting_conns.find(in.conn);
    if (parked == d.state.waiting_conns.end()) return;
    const auto of_conn = [&](const Waiter &w) { return w.conn == in.conn; };
    for (const SessionKey &key : parked->second) {
        std::vector<Waiter> &left = d.waiters(key);
        for (const Waiter &w : left)
            if (of_conn(w)) acknowledge(d, key, w.acknowledges);
        left.erase(std::remove_if(left.begin(), left.end(), of_conn), left.end());
    }
}

}  // namespace dcs::core
