// d_query. Decides nothing, so floating point is allowed in rows.
#include <algorithm>
#include <set>

#include "base/confinement.h"
#include "base/limits.h"
#include "scheduler/core/ahead.h"
#include "scheduler/core/placement.h"
#include "scheduler/core/stuck.h"
#include "scheduler/state/derived.h"
#include "scheduler/state/seniority.h"

namespace dcs::core {

bool without_job(const State &state, HostId id) {
    const Host &host = *state.host(id);
    return host.config->pilot && host.conn == no_connection && state.running[static_cast<std::size_t>(id)].empty();
}

const char *state_word(const State &state, HostId id) {
    return without_job(state, id) ? reason_of(Why::no_job).word : name_of(state.host(id)->status);
}

namespace {

// Rows of an answer that cannot be continued with `after`; keeps it inside a frame.
constexpr std::size_t rows_in_one_answer = 16384;
// Of the grains that an answer has beside the one that was asked about; what is missing is asked for again.
constexpr std::uint64_t detailed_bytes = 256 * 1024;

double since(Instant now, Instant then) { return then == Instant{} ? -1 : (now - then).seconds(); }

// A grain that waits on a host for one of its slots has not started: it counts as ready.
GrainStatus status_for_people(const Grain &g) { return g.ahead ? GrainStatus::ready : g.status(); }

std::int32_t count_for_people(const Session &session, GrainStatus status) {
    const int sign = status == GrainStatus::ready ? 1 : status == GrainStatus::running ? -1 : 0;
    return session.counts[static_cast<int>(status)] + sign * session.ahead;
}

wire::SystemRow system_row(const State &state) {
    wire::SystemRow row{.epoch = state.epoch};
    for (const HostClass &c : state.classes) row.classes.push_back({c.name, c.mask});
    for (std::size_t i = 0; i < state.hosts.size(); ++i) {
        const Host &host = state.hosts[i];
        row.hosts += host.configured && !without_job(state, static_cast<HostId>(i));
        row.hosts_active +=
            host.configured && host.status == HostStatus::active && !without_job(state, static_cast<HostId>(i));
    }
    row.sessions_active = static_cast<std::int32_t>(state.by_seniority.size());
    for (const wire::MemberRow &member : member_rows(state))
        if (member.role == "backup")
            row.backups.push_back({member.name, !member.joined     ? "not_joined"
                                                : member.connected ? "connected"
                                                                   : "away"});
    for (const auto &[seniority, key] : state.by_seniority) {
        const Session &session = *state.session(key);
        row.ready += count_for_people(session, GrainStatus::ready);
        row.running += count_for_people(session, GrainStatus::running);
    }
    return row;
}

std::string in_seconds(Duration d) { return std::to_string(std::max<std::int64_t>(0, d.ns / 1'000'000'000)) + " s"; }

std::string checked_note(const Draft &d, const Host &host) {
    if (host.checked == Checked::asked) return "probing whether it is still alive";
    if (host.checked != Checked::alive) return "";
    const Duration left = host.last_contact + host.config->extended - d.now;
    return "may be alive: its grains stay for another " + in_seconds(left);
}

// What people should know beside the figures.
std::string note_of(const Draft &d, std::size_t i) {
    const Host &host = d.state.hosts[i];
    std::string note;
    const auto put = [&](const std::string &text) {
        if (!text.empty()) note += (note.empty() ? "" : "; ") + text;
    };
    const auto count = [](auto n, const char *one, const char *many) {
        return n == 0 ? std::string() : std::to_string(n) + (n == 1 ? one : many);
    };
    if (!host.shut.empty()) put("shut: " + host.shut);
    if (host.conn != no_connection && too_open(host)) put(too_open_text(host));
    if (host.conn != no_connection && host.form < wire::newest_form)
        put("its grain server is of an older release (protocol form " + std::to_string(host.form) + "): upgrade it");
    put(host.warning);
    put(checked_note(d, host));
    if (d.state.policy.probation > 0 && host.blamed_lately >= d.state.policy.probation)
        put("on probation: one grain at a time until one finishes");
    const auto held =
        std::count_if(host.held_back.begin(), host.held_back.end(), [&](const HeldBack &h) { return h.until > d.now; });
    put(count(held, " grain paused after a failed start", " grains paused after failed starts"));
    const auto missing =
        std::count_if(host.missing.begin(), host.missing.end(), [&](const auto &m) { return m.second > d.now; });
    put(count(missing, " program cannot be executed", " programs cannot be executed"));
    put(count(usurpations(d.state, static_cast<HostId>(i)).size(), " grain waits for a slot",
              " grains wait for a slot"));
    return note;
}

std::string limits_text(const wire::GrainLimits &most) {
    std::string text;
    const auto put = [&](const char *name, std::int64_t n) {
        if (n > 0) text += (text.empty() ? "" : ",") + std::string(name) + "=" + std::to_string(n);
    };
    put("memory_mb", most.memory_mb);
    put("processes", most.processes);
    put("cpu_s", most.cpu_s);
    put("file_mb", most.file_mb);
    put("disk_mb", most.disk_mb);
    return text;
}

wire::HostRow host_row(const Draft &d, std::size_t i) {
    const Host &host = d.state.hosts[i];
    wire::HostRow row;
    row.name = host.config->name;
    row.state = state_word(d.state, static_cast<HostId>(i));
    row.binary_class = binary_class_of(host);
    row.host_class = host.config->host_class;
    row.class_names = class_names(row.host_class, d.state.classes);
    row.time_zone_offset = host.config->time_zone_offset;
    row.slots = host.config->slots;
    row.cores = cores_of(host.config);
    row.cores_used = static_cast<std::int32_t>(d.state.used[i].cores);
    row.memory_mb = host.config->memory_mb;
    row.memory_used_mb = d.state.used[i].memory_mb;
    row.resources = resource_text(all_offers(host));
    row.resources_used = resource_text(d.state.used[i].resources);
    row.connected = host.conn != no_connection;
    row.drained = host.setting.drained;
    row.drain_reason = host.setting.drain_reason;
    row.ending = host.conn != no_connection ? host.ending : 0;
    row.settings = to_text(host.setting);
    row.note = note_of(d, i);
    row.users = host.config->users;
    row.blamed = static_cast<std::int64_t>(host.totals.blamed);
    row.blamed_lately = host.blamed_lately;
    row.running = static_cast<std::int32_t>(on_slots(d.state, static_cast<HostId>(i)));
    row.last_call_in_s = since(d.now, host.last_call);
    row.interval_s = host.config->interval.seconds();
    row.alert_s = host.config->alert.seconds();
    row.limit_s = host.config->limit.seconds();
    row.extended_s = host.config->extended.seconds();
    row.load = host.load;
    row.free_memory_kb = host.free_memory_kb;
    row.launched = static_cast<std::int64_t>(host.totals.launched);
    row.finished = static_cast<std::int64_t>(host.totals.finished);
    row.failed = static_cast<std::int64_t>(host.totals.failed);
    row.given_back = static_cast<std::int64_t>(host.totals.given_back);
    row.cpu_s = static_cast<double>(host.totals.cpu_us) / 1e6;
    if (host.last_call != Instant{}) row.confinement = to_words(host.confinement);
    row.expires_s = certificate_end(d.state, host.config->name);
    row.version = host.version;
    if (row.connected) row.address = host.address;
    row.limits = limits_text(host.limits);
    return row;
}

wire::SessionRow session_row(const Caller &caller, const SessionKey &key, const Session &session) {
    wire::SessionRow row;
    row.user = key.user;
    row.session = key.number;
    row.ident = session.info.ident;
    row.state = name_of(session.info.status);
    row.ready = count_for_people(session, GrainStatus::ready);
    row.running = count_for_people(session, GrainStatus::running);
    row.finished = count_for_people(session, GrainStatus::finished);
    row.killed = count_for_people(session, GrainStatus::killed);
    row.sent = returned_below(session, acknowledged(session));
    row.saved_cpu_s = static_cast<double>(session.saved_us) / 1e6;
    row.nice = nice_in(session.info.seniority);
    row.failed = session.failed;
    row.submitted_s = static_cast<double>(session.info.opened_ms) / 1e3;
    row.settled_s = static_cast<double>(session.info.settled_ms) / 1e3;
    row.stored_bytes = stored_by(session.info) + session.own_trees;
    if (caller.user != key.user && !caller.privileged) return row;
    row.command = session.info.command;
    row.label = session.info.label;
    return row;
}

wire::SessionRow damaged_row(const SessionKey &key) {
    return {.user = key.user, .session = key.number, .state = "damaged"};
}

double cpu_of(const wire::Usage &u) {
    return (static_cast<double>(u.user_us) + static_cast<double>(u.system_us)) / 1e6;
}

wire::GrainRow grain_row(const Draft &d, const Caller &caller, const GrainKey &key, const Grain &g) {
    wire::GrainRow row;
    const Host *host = d.state.host(g.lessee);
    const GrainStatus status = status_for_people(g);
    const wire::Usage usage = total_usage(g);
    row.user = key.session.user;
    row.session = key.session.number;
    row.grain = key.grain;
    row.state = name_of(status);
    row.host = host && status != GrainStatus::ready ? host->config->name : "";
    row.incarnation = g.incarnation;
    row.demands = g.demands.get();
    row.starts = static_cast<std::int32_t>(g.incarnation - std::min(g.course->skipped, g.incarnation));
    row.restarts = std::max(0, row.starts - 1);
    row.failures = g.course->failures;
    if (const auto *end = std::get_if<Finished>(&g.phase)) {
        row.exit_code = end->exit_code;
        row.signal = end->signal;
        row.result_index = end->result_index;
        for (const wire::GrainFile &file : g.files->outputs)
            if (file.digest.empty() && row.files.empty()) row.files = {file};
        const bool details = caller.user == key.session.user || caller.privileged;
        if (!row.files.empty() && !details) row.files[0].name.clear();
    }
    row.cpu_s = cpu_of(usage);
    row.user_s = static_cast<double>(usage.user_us) / 1e6;
    row.system_s = static_cast<double>(usage.system_us) / 1e6;
    row.max_rss_kb = usage.max_rss_kb;
    row.minor_faults = usage.minor_faults;
    row.major_faults = usage.major_faults;
    row.in_blocks = usage.in_blocks;
    row.out_blocks = usage.out_blocks;
    row.run_cpu_s = cpu_of(g.course->current);
    row.saved_cpu_s = static_cast<double>(g.course->kept->saved) / 1e6;
    row.last_contact_s = status == GrainStatus::running && host ? since(d.now, host->last_call) : -1;
    row.checkpoint_age_s = since(d.now, g.recent->checkpoint_time);
    row.out_length = g.course->out_length;
    row.err_length = g.course->err_length;
    row.checkpoint_length = g.course->checkpoint_length;
    if (const auto why = d.state.unrecorded.of(d.state, key)) row.note = unrecorded_text(*why);
    return row;
}

// With what only the row of a single grain has.
wire::GrainRow detailed_row(const Draft &d, const Caller &caller, const GrainKey &key, const Grain &g) {
    wire::GrainRow row = grain_row(d, caller, key, g);
    const auto name = [&](HostId id) {
        const Host *host = d.state.host(id);
        return host ? host->config->name : std::string();
    };
    if (const Host *host = d.state.host(g.lessee))
        if (const auto uid = host->uids.find(key.session.user); uid != host->uids.end()) row.uid = uid->second;
    for (const HostId id : g.course->nogo.get()) row.nogo.push_back(name(id));
    row.class_names = class_names(g.demands->host_class, d.state.classes);
    row.files = g.files->outputs;
    for (const Move &m : g.course->moves.get())
        row.moves.push_back({name_of(m.reason), name(m.host), m.detail, m.incarnation});
    for (std::size_t back = 1; back <= g.recent->moved.size(); ++back)
        row.moves[row.moves.size() - back].age_s = since(d.now, g.recent->moved[g.recent->moved.size() - back]);
    return row;
}

// One session's rows after `after`.
void grain_rows(Draft &d, const Caller &caller, const SessionKey &key, const wire::Query &call, std::size_t max,
                wire::QueryReply &reply) {
    const Session &session = *d.state.session(key);
    std::size_t left = 0;  // rows that can still match, so that the search ends early
    for (int s = 0; s < 4; ++s)
        if (call.status.empty() || call.status == name_of(static_cast<GrainStatus>(s)))
            left += static_cast<std::size_t>(count_for_people(session, static_cast<GrainStatus>(s)));
    for (auto it = session.grains.upper_bound(call.after); it != session.grains.end() && left > 0; ++it) {
        d.looked_at(1);
        if (!call.status.empty() && call.status != name_of(status_for_people(it->second))) continue;
        if (reply.grains.size() >= max) {
            reply.more = true;
            return;
        }
        reply.grains.push_back(grain_row(d, caller, GrainKey{key, it->first}, it->second));
        --left;
    }
}

void query_grains(Draft &d, const Caller &caller, const wire::Query &call, const std::string &user) {
    wire::QueryReply reply;
    if (!call.status.empty() && call.status != "ready" && call.status != "running" && call.status != "finished" &&
        call.status != "killed")
        return d.refuse(caller,
                        fail(Code::invalid,
                             "the status of a grain must be ready, running, finished or killed, not " + call.status));
    if (call.session >= 0) {
        const SessionKey key{user, call.session};
        if (!d.state.session(key)) return d.refuse(caller, missing_session(d.state, key));
        grain_rows(d, caller, key, call, limits::query_rows, reply);
        return d.reply(caller, std::move(reply));
    }
    // All sessions of the user: one answer. Who needs more of them asks session by session.
    auto it = d.state.sessions.lower_bound(SessionKey{user, 0});
    for (; it != d.state.sessions.end() && it->first.user == user && !reply.more; ++it)
        grain_rows(d, caller, it->first, call, rows_in_one_answer, reply);
    d.reply(caller, std::move(reply));
}

// Those that are there and those that were set aside, in one order.
void query_sessions(Draft &d, const Caller &caller, const wire::Query &call) {
    wire::QueryReply reply{.last_number = last_number_of(d.state, call.user.empty() ? caller.user : call.user)};
    const std::string &first = call.after_user.empty() ? call.user : call.after_user;
    const bool pages = !call.after_user.empty() || call.after >= 0;
    for (const auto &[user, stored] : d.state.stored.users())
        if (!pages && (call.user.empty() || call.user == user))
            reply.stored.push_back({user, stored.sessions, stored.contents});
    SessionKey start{first, 0};
    if (pages && call.after < INT32_MAX) start = {first, std::max(call.after, -1) + 1};
    if (pages && call.after == INT32_MAX) start = {first + '\0', 0};
    const bool one = !call.user.empty() && call.session >= 0;
    start = std::max(start, SessionKey{call.user, one ? call.session : 0});
    auto whole = d.state.sessions.lower_bound(start);
    auto damaged = d.state.set_aside.lower_bound(start);
    const auto there = [&](const auto &it, const auto &list) {
        if (it == list.end() || (!call.user.empty() && it->first.user != call.user)) return false;
        return !one || it->first.number == call.session;
    };
    for (;;) {
        const bool a = there(whole, d.state.sessions), b = there(damaged, d.state.set_aside);
        if (!a && !b) break;
        const bool takes_whole = a && (!b || whole->first < damaged->first);
        const SessionKey &key = takes_whole ? whole->first : damaged->first;
        d.looked_at(1);
        if (call.session < 0 || key.number == call.session) {
            reply.more = reply.sessions.size() >= limits::query_rows;
            if (reply.more) break;
            reply.sessions.push_back(takes_whole ? session_row(caller, key, whole->second) : damaged_row(key));
            if (takes_whole && call.session >= 0) reply.sessions.back().stuck = stuck_for_row(d.state, key);
        }
        takes_whole ? void(++whole) : void(++damaged);
    }
    d.reply(caller, std::move(reply));
}

void query_hosts(Draft &d, const Caller &caller, const wire::Query &call) {
    wire::QueryReply reply;
    bool known = call.status.empty() || call.status == reason_of(Why::no_job).word;
    for (const HostStatus s : {HostStatus::unknown, HostStatus::active, HostStatus::delinquent, HostStatus::dead})
        known = known || call.status == name_of(s);
    if (!known)
        return d.refuse(caller, fail(Code::invalid,
                                     "the status of a host must be active, delinquent, dead, no_job or unknown, not " +
                                         call.status));
    reply.members = member_rows(d.state);
    for (std::size_t i = 0; i < d.state.hosts.size(); ++i) {
        const Host &host = d.state.hosts[i];
        if (host.configured && (call.status.empty() || call.status == state_word(d.state, static_cast<HostId>(i))))
            reply.hosts.push_back(host_row(d, i));
    }
    d.reply(caller, std::move(reply));
}

void query_grain(Draft &d, const Caller &caller, const wire::Query &call, const std::string &user) {
    const GrainKey key{SessionKey{user, call.session}, call.grain};
    if (!d.state.session(key.session)) return d.refuse(caller, missing_session(d.state, key.session));
    const Grain *grain = d.state.grain(key);
    if (!grain) return d.refuse(caller, missing_grain(d.state, key));
    ReplyGrainDetail reply{caller.conn, caller.request, key, {}};
    const auto add = [&](const GrainKey &one, const Grain &g) {
        if (g.course->message_length > 0) note_shown(d, caller, one);
        reply.rows.push_back(detailed_row(d, caller, one, g));
    };
    add(key, *grain);
    std::uint64_t bytes = detail_bytes(*grain);
    std::set<GrainNumber> shown{call.grain};
    for (const GrainNumber number : call.with) {
        if (!shown.insert(number).second) continue;
        const GrainKey other{key.session, number};
        const Grain *g = d.state.grain(other);
        if (!g) continue;
        bytes += detail_bytes(*g);
        if (bytes > detailed_bytes) break;
        d.looked_at(1);
        add(other, *g);
    }
    d.effect(std::move(reply));
}

}  // namespace

void query(Draft &d, const Caller &caller, const wire::Query &call) {
    const std::string &user = call.user.empty() ? caller.user : call.user;
    switch (call.type) {
    case wire::QueryType::system: {
        wire::QueryReply reply{.system = system_row(d.state)};
        return d.reply(caller, std::move(reply));
    }
    case wire::QueryType::hosts: return query_hosts(d, caller, call);
    case wire::QueryType::sessions: return query_sessions(d, caller, call);
    case wire::QueryType::grains: return query_grains(d, caller, call, user);
    case wire::QueryType::grain: return query_grain(d, caller, call, user);
    }
    d.refuse(caller, fail(Code::invalid, "a query of an unknown type"));
}

}  // namespace dcs::core
