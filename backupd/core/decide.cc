#include <algorithm>

#include "backupd/core/state.h"
#include "base/planted.h"

namespace dcs::backup {
namespace {

// For a host without reports so far.
const HostReports nothing_held;

struct Decider {
    const State &state;
    const Moment &moment;
    Decision out;

    template <class C> void change(C c) { out.changes.emplace_back(std::move(c)); }
    template <class E> void effect(E e) { out.effects.emplace_back(std::move(e)); }
    const HostReports &reports_of(const std::string &host) const {
        const HostReports *known = state.host(host);
        return known ? *known : nothing_held;
    }

    static bool counts(const Guest &guest, const Members &members) {
        const auto known = members.find(guest.host);
        return !guest.key || (known != members.end() && known->second == *guest.key) ||
               planted("backup.believe_any_certificate");
    }

    void turn_out(ConnId conn, const std::string &why) {
        if (!why.empty()) effect(Reply{conn, 0, wire::Refused{why}});
        if (state.servers.count(conn) != 0) change(SetServer{conn, {}});
        effect(CloseConnection{conn});
    }

    void operator()(const ServerCame &in) {
        const std::string &name = in.guest.host;
        if (!counts(in.guest, state.members)) {
            out.events.push_back("host " + name + " was refused: its certificate is not accepted");
            return turn_out(in.conn, state.members.empty()
                                         ? "the scheduler has not yet told the backup which hosts belong to the pool"
                                         : "the certificate of host " + name + " is not accepted by the scheduler");
        }
        for (const auto &[conn, guest] : state.servers)
            if (guest.host == name && conn != in.conn) turn_out(conn, "");
        change(SetServer{in.conn, in.guest});
        effect(Reply{in.conn, 0, wire::BackupReady{state.store, reports_of(name).last}});
    }

    void operator()(const MembersTold &in) {
        if (*in.members == state.members) return;
        change(SetMembers{in.members});
        effect(SaveMembers{});
        for (const auto &[conn, guest] : state.servers) {
            if (counts(guest, *in.members)) continue;
            out.events.push_back("host " + guest.host + " is disconnected: its certificate is no longer accepted");
            turn_out(conn, "the certificate of host " + guest.host + " is no longer accepted by the scheduler");
        }
    }

    void answer(const ReportCame &in, std::uint64_t number, std::uint32_t last, bool ended, wire::Verdict verdict) {
        const wire::ReportAck ack{in.report->key, in.report->incarnation, last, ended, verdict};
        effect(Reply{in.conn, 0, wire::BackupHas{state.store, number, ack}});
    }

    void refuse(const ReportCame &in, std::uint64_t number, bool full) {
        Counters counters = state.counters;
        ++counters.refused;
        change(SetCounters{counters, state.full || full});
        if (full && !state.full)
            out.events.push_back("full: reports of " + std::to_string(state.bytes >> 20) +
                                 " MiB are held, servers keep further ones until the scheduler accepts these");
        answer(in, number, in.report->last_seq, in.report->ended, wire::Verdict::later);
    }

    // Accepts reports in the order of their arrival, each once; the scheduler decides whether they are valid.
    void operator()(const ReportCame &in) {
        const auto server = state.servers.find(in.conn);
        if (server == state.servers.end()) return;
        const wire::GrainReport &r = *in.report;
        const bool brings = r.first_seq <= r.last_seq;
        if (!brings && !r.ended) return;  // a sign of life without news
        const std::string &name = server->second.host;
        const HostReports &host = reports_of(name);
        const auto newest = host.newest.find({wire::key_of(r.key), r.incarnation});
        if (newest != host.newest.end()) {
            const Newest &n = newest->second;
            if (n.ended || (brings && r.first_seq <= n.last_seq))
                return answer(in, host.last, std::max(n.last_seq, n.ended ? r.last_seq : 0u), n.ended,
                              wire::Verdict::have_it);
        }
        const std::uint64_t length = in.packed->size();
        if (!moment.may_hold) return refuse(in, host.last, false);
        if (state.bytes + length > state.most_bytes) return refuse(in, host.last, true);
        if (planted("backup.answer_without_holding"))
            return answer(in, host.last + 1, r.last_seq, r.ended, wire::Verdict::taken);
        Held held{host.last + 1, wire::key_of(r.key), r.incarnation, r.first_seq, r.last_seq,
                  r.ended,       host.log_length,     length};
        change(Hold{name, std::move(held), in.packed});
        answer(in, host.last + 1, r.last_seq, r.ended, wire::Verdict::taken);
        if (state.link == Link::ready) out.follow_ups.emplace_back(GoOn{});
    }

    void operator()(const ConnectionClosed &in) {
        if (state.servers.count(in.conn) != 0) change(SetServer{in.conn, {}});
    }

    void operator()(const Asked &in) {
        wire::BackupStatus s{.store = state.store};
        for (const auto &[name, host] : state.hosts) s.hosts += !host.held.empty();
        s.reports = state.reports;
        s.bytes = state.bytes;
        s.most_bytes = state.most_bytes;
        s.taken = state.counters.taken;
        s.handed_over = state.counters.handed_over;
        s.refused = state.counters.refused;
        s.servers = static_cast<std::int32_t>(state.servers.size());
        s.scheduler = state.link == Link::ready;
        s.up_s = (moment.now - state.started).seconds();
        effect(Reply{in.conn, in.request, s});
    }

    void operator()(const LinkOpened &) {
        if (state.link != Link::connecting) return;
        change(SetLink{Link::greeting, moment.now + link_patience, state.failures});
        effect(ToScheduler{wire::BackupCall{wire::opening_form, state.store}});
    }

    // 0.2 s, doubled each time up to 5 s, plus or minus a quarter.
    void rest() {
        const int failures = state.failures + 1;
        Duration pause = first_retry;
        for (int i = 1; i < failures && pause < retry_max; ++i) pause = pause * 2;
        const double some = static_cast<double>(std::min(pause, retry_max).ns) * (0.75 + moment.jitter / 2);
        change(SetLink{Link::down, moment.now + Duration{static_cast<std::int64_t>(some)}, failures});
    }

    void operator()(const LinkClosed &in) {
        if (state.link == Link::down) return;
        if (state.link == Link::ready || state.failures == 0)
            out.events.push_back("no connection to the scheduler: " + in.why + "; trying again");
        rest();
    }

    void operator()(const SchedulerKnows &) {
        if (state.link != Link::greeting) return;
        change(SetLink{Link::ready, Instant::never(), 0});
        out.events.push_back("the scheduler is back; handing over " + std::to_string(state.reports) + " reports");
        out.follow_ups.emplace_back(GoOn{});
    }

    void operator()(const Taken &in) {
        const HostReports *host = state.host(in.host);
        const bool told = host && state.link == Link::ready && in.number <= host->sent;
        if (!told || in.number <= host->forgotten) return;  // from an earlier connection
        Counters counters = state.counters;
        for (const Held &held : host->held) {
            if (held.number > in.number) break;
            ++counters.handed_over;
        }
        change(Forget{in.host, in.number});
        change(SetCounters{counters, false});
        out.follow_ups.emplace_back(GoOn{});
    }

    void operator()(const Tick &) {
        if (state.link == Link::ready || moment.now < state.link_at) return;
        if (state.link == Link::down) {
            change(SetLink{Link::connecting, moment.now + link_patience, state.failures});
            return effect(Connect{});
        }
        effect(Disconnect{});
        (*this)(LinkClosed{state.link == Link::connecting ? "it does not accept connections" : "it does not answer"});
    }

    // Round robin over the hosts; the reports of each in order. The window is refilled when it is half empty.
    void operator()(const GoOn &) {
        if (state.link != Link::ready || 2 * state.sent_reports > limits::hand_over_reports) return;
        std::uint64_t reports = state.sent_reports, bytes = state.sent_bytes;
        std::map<std::string, std::deque<Held>::const_iterator> next;
        for (const std::string &name : state.unsent) {
            const HostReports &host = state.hosts.at(name);
            next[name] = std::upper_bound(host.held.begin(), host.held.end(), host.sent,
                                          [](std::uint64_t n, const Held &h) { return n < h.number; });
        }
        while (!next.empty()) {
            for (auto it = next.begin(); it != next.end();) {
                const HostReports &host = state.hosts.at(it->first);
                const bool room = reports == 0 || (reports < limits::hand_over_reports &&
                                                   bytes + it->second->length <= limits::hand_over_bytes);
                if (!room) return;
                reports += 1;
                bytes += it->second->length;
                change(SetSent{it->first, it->second->number});
                effect(HandOver{it->first, *it->second});
                if (planted("backup.forget_when_sent")) change(Forget{it->first, it->second->number});
                it = ++it->second == host.held.end() ? next.erase(it) : std::next(it);
            }
        }
    }
};

}  // namespace

Decision decide(const State &state, const Moment &moment, const Input &input) {
    Decider decider{state, moment, {}};
    std::visit(decider, input);
    return std::move(decider.out);
}

}  // namespace dcs::backup
