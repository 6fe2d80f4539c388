// d_query and the streams of a grain (C10). Decides nothing, so floating point is allowed in rows.
#include <algorithm>
#include <tuple>

#include "base/limits.h"
#include "scheduler/core/decisions.h"

namespace dcs::core {
namespace {

// Rows of an answer that cannot be continued with `after`; keeps it inside a frame.
constexpr std::size_t rows_in_one_answer = 16384;

double since(Instant now, Instant then) { return then == Instant{} ? -1 : (now - then).seconds(); }

wire::SystemRow system_row(const State &state) {
    wire::SystemRow row;
    row.epoch = state.epoch;
    for (const Host &host : state.hosts) {
        row.hosts += host.configured;
        row.hosts_active += host.configured && host.status == HostStatus::active;
    }
    row.sessions_active = static_cast<std::int32_t>(state.by_seniority.size());
    for (const auto &[seniority, key] : state.by_seniority) {
        const Session &session = *state.session(key);
        row.ready += session.counts[static_cast<int>(GrainStatus::ready)];
        row.running += session.counts[static_cast<int>(GrainStatus::running)];
    }
    return row;
}

wire::HostRow host_row(const Draft &d, std::size_t i) {
    const Host &host = d.state.hosts[i];
    wire::HostRow row;
    row.name = host.config.name;
    row.state = name_of(host.status);
    row.binary_class = host.binary_class.empty() ? host.config.binary_class : host.binary_class;
    row.host_class = host.config.host_class;
    row.slots = host.config.slots;
    row.running = static_cast<std::int32_t>(d.state.running[i].size());
    const bool called = host.status != HostStatus::unknown;
    row.last_call_in_s = called ? since(d.now, host.last_contact) : -1;
    row.interval_s = host.config.interval.seconds();
    row.load = host.load;
    row.free_memory_kb = host.free_memory_kb;
    row.launched = static_cast<std::int64_t>(host.totals.launched);
    row.finished = static_cast<std::int64_t>(host.totals.finished);
    row.failed = static_cast<std::int64_t>(host.totals.failed);
    row.given_back = static_cast<std::int64_t>(host.totals.given_back);
    row.cpu_s = static_cast<double>(host.totals.cpu_us) / 1e6;
    return row;
}

wire::SessionRow session_row(const SessionKey &key, const Session &session) {
    const auto count = [&](GrainStatus s) { return session.counts[static_cast<int>(s)]; };
    wire::SessionRow row;
    row.user = key.user;
    row.session = key.number;
    row.ident = session.info.ident;
    row.state = name_of(session.info.status);
    row.ready = count(GrainStatus::ready);
    row.running = count(GrainStatus::running);
    row.finished = count(GrainStatus::finished);
    row.killed = count(GrainStatus::killed);
    row.sent = session.info.sent;
    return row;
}

wire::SessionRow damaged_row(const SessionKey &key) {
    wire::SessionRow row;
    row.user = key.user;
    row.session = key.number;
    row.state = "damaged";
    return row;
}

wire::GrainRow grain_row(const Draft &d, const GrainKey &key, const Grain &g) {
    wire::GrainRow row;
    const Host *host = d.state.host(g.host);
    const bool runs = g.status == GrainStatus::running;
    const wire::Usage usage = total_usage(g);
    row.user = key.session.user;
    row.session = key.session.number;
    row.grain = key.grain;
    row.state = name_of(g.status);
    row.host = host && g.status != GrainStatus::ready ? host->config.name : "";
    row.incarnation = g.incarnation;
    row.host_class = g.host_class;
    const Incarnation leases = g.incarnation - g.skipped;
    row.restarts = leases > 1 ? static_cast<std::int32_t>(leases - 1) : 0;
    row.failures = g.failures;
    row.exit_code = g.exit_code;
    row.signal = g.signal;
    row.result_index = g.result_index;
    row.cpu_s = (static_cast<double>(usage.user_us) + static_cast<double>(usage.system_us)) / 1e6;
    row.last_contact_s =
        runs && host && host->status != HostStatus::unknown ? since(d.now, host->last_contact) : -1;
    row.checkpoint_age_s = since(d.now, g.checkpoint_time);
    row.out_length = g.out_length;
    row.err_length = g.err_length;
    row.checkpoint_length = g.checkpoint_length;
    return row;
}

// One session's rows after `after`.
void grain_rows(const Draft &d, const SessionKey &key, const wire::Query &call, std::size_t max,
                wire::QueryReply &reply) {
    const Session &session = *d.state.session(key);
    std::size_t left = 0;  // rows that can still match, so that the search ends early
    for (int s = 0; s < 4; ++s)
        if (call.status.empty() || call.status == name_of(static_cast<GrainStatus>(s)))
            left += static_cast<std::size_t>(session.counts[s]);
    for (auto it = session.grains.upper_bound(call.after); it != session.grains.end() && left > 0;
         ++it) {
        if (!call.status.empty() && call.status != name_of(it->second.status)) continue;
        if (reply.grains.size() >= max) {
            reply.more = true;
            return;
        }
        reply.grains.push_back(grain_row(d, GrainKey{key, it->first}, it->second));
        --left;
    }
}

void query_grains(Draft &d, const Caller &caller, const wire::Query &call,
                  const std::string &user) {
    wire::QueryReply reply;
    if (!call.status.empty() && call.status != "ready" && call.status != "running" &&
        call.status != "finished" && call.status != "killed")
        return d.refuse(caller,
                        fail(Code::invalid,
                             "a grain is ready, running, finished or killed, not " + call.status));
    if (call.session >= 0) {
        const SessionKey key{user, call.session};
        if (!d.state.session(key)) return d.refuse(caller, missing_session(d.state, key));
        grain_rows(d, key, call, limits::query_rows, reply);
        return d.reply(caller, std::move(reply));
    }
    // All sessions of the user: one answer, cut off where a frame would be too long.
    auto it = d.state.sessions.lower_bound(SessionKey{user, 0});
    for (; it != d.state.sessions.end() && it->first.user == user; ++it)
        grain_rows(d, it->first, call, rows_in_one_answer, reply);
    reply.more = false;
    d.reply(caller, std::move(reply));
}

void query_sessions(Draft &d, const Caller &caller, const wire::Query &call) {
    wire::QueryReply reply;
    auto it = d.state.sessions.lower_bound(SessionKey{call.user, 0});
    for (; it != d.state.sessions.end() && reply.sessions.size() < rows_in_one_answer; ++it) {
        if (!call.user.empty() && it->first.user != call.user) break;
        if (call.session >= 0 && it->first.number != call.session) continue;
        reply.sessions.push_back(session_row(it->first, it->second));
    }
    for (const auto &[key, why] : d.state.set_aside) {
        if (!call.user.empty() && key.user != call.user) continue;
        if (call.session >= 0 && key.number != call.session) continue;
        if (reply.sessions.size() >= rows_in_one_answer) break;
        reply.sessions.push_back(damaged_row(key));
    }
    std::sort(reply.sessions.begin(), reply.sessions.end(), [](const auto &a, const auto &b) {
        return std::tie(a.user, a.session) < std::tie(b.user, b.session);
    });
    d.reply(caller, std::move(reply));
}

void query_grain(Draft &d, const Caller &caller, const wire::Query &call, const std::string &user) {
    if (Status s = check_owner(caller, user); !s) return d.refuse(caller, s);
    const GrainKey key{SessionKey{user, call.session}, call.grain};
    if (!d.state.session(key.session)) return d.refuse(caller, missing_session(d.state, key.session));
    const Grain *grain = d.state.grain(key);
    if (!grain) return d.refuse(caller, missing_grain(d.state, key));
    d.effect(ReplyGrainDetail{caller.conn, caller.request, key, grain_row(d, key, *grain)});
}

}  // namespace

void query(Draft &d, const Caller &caller, const wire::Query &call) {
    const std::string &user = call.user.empty() ? caller.user : call.user;
    switch (call.type) {
        case wire::QueryType::system: {
            wire::QueryReply reply;
            reply.system = system_row(d.state);
            return d.reply(caller, std::move(reply));
        }
        case wire::QueryType::hosts: {
            wire::QueryReply reply;
            for (std::size_t i = 0; i < d.state.hosts.size(); ++i)
                if (d.state.hosts[i].configured) reply.hosts.push_back(host_row(d, i));
            return d.reply(caller, std::move(reply));
        }
        case wire::QueryType::sessions: return query_sessions(d, caller, call);
        case wire::QueryType::grains: return query_grains(d, caller, call, user);
        case wire::QueryType::grain: return query_grain(d, caller, call, user);
    }
    d.refuse(caller, fail(Code::invalid, "a query of an unknown type"));
}

void fetch_stream(Draft &d, const Caller &caller, const wire::Fetch &call) {
    wire::Fetch fetch = call;
    if (fetch.user.empty()) fetch.user = caller.user;
    if (Status s = check_owner(caller, fetch.user); !s) return d.refuse(caller, s);
    const GrainKey key{SessionKey{fetch.user, fetch.session}, fetch.grain};
    if (!d.state.session(key.session)) return d.refuse(caller, missing_session(d.state, key.session));
    if (!d.state.grain(key)) return d.refuse(caller, missing_grain(d.state, key));
    if (fetch.stream > wire::Stream::input)
        return d.refuse(caller, fail(Code::invalid, "a grain has no such stream"));
    const auto chunk = static_cast<std::uint32_t>(limits::fetch_chunk_bytes);
    fetch.max = fetch.max == 0 ? chunk : std::min(fetch.max, chunk);
    d.effect(ReplyPiece{caller.conn, caller.request, key, fetch});
}

}  // namespace dcs::core
