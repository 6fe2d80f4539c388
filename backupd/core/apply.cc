// apply(): the only function that changes the backup's State.
#include <algorithm>

#include "backupd/core/state.h"
#include "base/require.h"

namespace dcs::backup {
namespace {

void note(HostReports &host, const Held &held) {
    Newest &n = host.newest[{held.key, held.incarnation}];
    n.number = std::max(n.number, held.number);
    n.last_seq = std::max(n.last_seq, held.last_seq);
    n.ended = n.ended || held.ended;
}

void note_all(HostReports &host) {
    host.newest.clear();
    for (const Held &held : host.held) note(host, held);
}

void count_unsent(State &state, const std::string &name, const HostReports &host) {
    if (!host.held.empty() && host.held.back().number > host.sent) state.unsent.insert(name);
    else state.unsent.erase(name);
}

// Changes the part of a host's reports that is in transfer from `host.sent` to `number`.
void set_sent(State &state, const std::string &name, std::uint64_t number) {
    HostReports &host = state.hosts[name];
    const auto [low, high] = std::minmax(host.sent, number);
    const auto begin = std::upper_bound(host.held.begin(), host.held.end(), low,
                                        [](std::uint64_t n, const Held &h) { return n < h.number; });
    for (auto it = begin; it != host.held.end() && it->number <= high; ++it) {
        const bool more = number > host.sent;
        state.sent_reports += more ? 1 : -std::uint64_t{1};
        state.sent_bytes += more ? it->length : -it->length;
    }
    host.sent = number;
    count_unsent(state, name, host);
}

struct Applier {
    State &state;
    Undo::Step &step;

    void operator()(const Hold &c) {
        HostReports &host = state.hosts[c.host];
        DCS_REQUIRE(c.report.number == host.last + 1 && c.report.offset == host.log_length, "reports are in order");
        host.last = c.report.number;
        host.log_length += c.report.length;
        host.held.push_back(c.report);
        note(host, c.report);
        state.bytes += c.report.length;
        state.reports += 1;
        state.counters.taken += 1;
        count_unsent(state, c.host, host);
    }
    void operator()(const Forget &c) {
        HostReports &host = state.hosts.at(c.host);
        DCS_REQUIRE(c.number <= host.sent && c.number > host.forgotten,
                    "only reports that were handed over are forgotten");
        step.number = host.forgotten;
        step.log_length = host.log_length;
        while (!host.held.empty() && host.held.front().number <= c.number) {
            const Held &held = host.held.front();
            const auto newest = host.newest.find({held.key, held.incarnation});
            DCS_REQUIRE(newest != host.newest.end(), "the leases of all held reports are known");
            DCS_REQUIRE(state.sent_bytes >= held.length && state.reports > 0, "forgotten reports were counted");
            if (newest->second.number == held.number) host.newest.erase(newest);
            state.reports -= 1;
            state.sent_reports -= 1;
            state.sent_bytes -= held.length;
            step.forgotten.push_back(held);
            host.held.pop_front();
        }
        host.forgotten = c.number;
        if (host.held.empty()) {
            DCS_REQUIRE(state.bytes >= host.log_length, "the log's length was counted");
            state.bytes -= host.log_length;
            host.log_length = 0;
        }
    }
    void operator()(const SetServer &c) {
        step.guest = std::exchange(state.servers[c.conn], c.guest);
        if (c.guest.host.empty()) state.servers.erase(c.conn);
    }
    void operator()(const SetMembers &c) { step.members = std::exchange(state.members, *c.members); }
    void operator()(const SetLink &c) {
        step.link = SetLink{state.link, state.link_at, state.failures};
        state.link = c.link;
        state.link_at = c.at;
        state.failures = c.failures;
        if (c.link == Link::ready) return;
        for (auto &[name, host] : state.hosts) {
            if (host.sent <= host.forgotten) continue;
            step.sent[name] = host.sent;
            set_sent(state, name, host.forgotten);
        }
    }
    void operator()(const SetSent &c) {
        step.number = state.hosts.at(c.host).sent;
        set_sent(state, c.host, c.number);
    }
    void operator()(const SetCounters &c) {
        step.counters = SetCounters{state.counters, state.full};
        state.counters = c.counters;
        state.full = c.full;
    }
};

struct Restorer {
    State &state;
    Undo::Step &step;

    void operator()(const Hold &c) {
        HostReports &host = state.hosts.at(c.host);
        DCS_REQUIRE(!host.held.empty() && host.held.back().number == c.report.number,
                    "changes are undone in reverse order");
        host.held.pop_back();
        host.last -= 1;
        host.log_length -= c.report.length;
        note_all(host);
        state.bytes -= c.report.length;
        state.reports -= 1;
        state.counters.taken -= 1;
        count_unsent(state, c.host, host);
    }
    void operator()(const Forget &c) {
        HostReports &host = state.hosts.at(c.host);
        host.forgotten = step.number;
        state.bytes += step.log_length - host.log_length;
        host.log_length = step.log_length;
        for (auto it = step.forgotten.rbegin(); it != step.forgotten.rend(); ++it) {
            state.reports += 1;
            state.sent_reports += 1;
            state.sent_bytes += it->length;
            host.held.push_front(std::move(*it));
        }
        note_all(host);
    }
    void operator()(const SetServer &c) {
        state.servers[c.conn] = step.guest;
        if (step.guest.host.empty()) state.servers.erase(c.conn);
    }
    void operator()(const SetMembers &) { state.members = std::move(step.members); }
    void operator()(const SetLink &) {
        state.link = step.link.link;
        state.link_at = step.link.at;
        state.failures = step.link.failures;
        for (const auto &[name, number] : step.sent) set_sent(state, name, number);
    }
    void operator()(const SetSent &c) { set_sent(state, c.host, step.number); }
    void operator()(const SetCounters &) {
        state.counters = step.counters.counters;
        state.full = step.counters.full;
    }
};

std::string wrong_with(const std::string &name, const HostReports &host) {
    const std::string who = "host " + name + ": ";
    std::uint64_t number = host.forgotten, end = 0;
    for (const Held &held : host.held) {
        if (held.number <= number || held.number > host.last) return who + "reports out of order";
        if (held.offset < end) return who + "records overlap";
        number = held.number;
        end = held.offset + held.length;
    }
    if (end > host.log_length) return who + "the log ends before its last record";
    if (host.held.empty() && host.log_length != 0) return who + "a log without reports";
    if (host.sent < host.forgotten) return who + "forgotten and not sent";
    return {};
}

}  // namespace

void apply(State &state, const Change &change, Undo &undo) {
    undo.steps.push_back({change, {}, 0, 0, {}, {}, {}, {}, {}});
    std::visit(Applier{state, undo.steps.back()}, change);
}

void roll_back(State &state, Undo &undo) {
    for (auto it = undo.steps.rbegin(); it != undo.steps.rend(); ++it) std::visit(Restorer{state, *it}, it->change);
    undo.steps.clear();
}

void load_host(State &state, const std::string &name, HostReports reports) {
    HostReports &host = state.hosts[name] = std::move(reports);
    if (host.held.empty()) host.log_length = 0;  // the next record truncates the log
    host.sent = host.forgotten;
    note_all(host);
    state.bytes += host.log_length;
    state.reports += host.held.size();
    count_unsent(state, name, host);
}

std::string check(const State &state) {
    std::uint64_t bytes = 0, reports = 0, sent = 0, sent_bytes = 0;
    for (const auto &[name, host] : state.hosts) {
        if (std::string wrong = wrong_with(name, host); !wrong.empty()) return wrong;
        bytes += host.log_length;
        reports += host.held.size();
        for (const Held &held : host.held) {
            if (held.number > host.sent) continue;
            ++sent;
            sent_bytes += held.length;
        }
        const bool more = !host.held.empty() && host.held.back().number > host.sent;
        if (more != (state.unsent.count(name) != 0)) return "host " + name + ": the set of unsent hosts is wrong";
        for (const Held &held : host.held)
            if (host.newest.count({held.key, held.incarnation}) == 0) return "host " + name + ": a lease is not known";
    }
    if (bytes != state.bytes || reports != state.reports) return "bytes or reports are counted wrong";
    if (sent != state.sent_reports || sent_bytes != state.sent_bytes) return "reports in transfer are counted wrong";
    if (sent != 0 && state.link != Link::ready) return "reports are in transfer without a connection";
    return {};
}

}  // namespace dcs::backup
