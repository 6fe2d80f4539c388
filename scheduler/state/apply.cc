// The only writer of State. Each entity has one function that takes it from what it is to what it shall be and keeps
// everything derived in step; apply and roll_back both go through it, so a roll-back cannot forget a consequence.
#include <algorithm>
#include <deque>
#include <memory>
#include <optional>
#include <utility>

#include "base/require.h"
#include "scheduler/state/decision.h"
#include "scheduler/state/derived.h"
#include "scheduler/state/sound.h"

namespace dcs::core {
namespace {

// Every change of a grain: from what there is (nothing: new) to `next` (nothing: gone).
std::optional<Grain> put_grain(State &state, const GrainKey &key, std::optional<Grain> next) {
    const auto found = state.sessions.find(key.session);
    DCS_REQUIRE(found != state.sessions.end(), "a grain belongs to a session");
    Session &session = found->second;
    std::optional<Grain> before;
    const auto it = session.grains.find(key.grain);
    if (it != session.grains.end()) {
        before = std::move(it->second);
        count_grain(state, session, key, *before, false);
    }
    if (next) {
        count_grain(state, session, key, *next, true);
        if (it != session.grains.end()) it->second = std::move(*next);
        else session.grains.emplace(key.grain, std::move(*next));
    } else if (it != session.grains.end()) {
        session.grains.erase(it);
    }
    refresh_unpacked(state, key.session, session);
    return before;
}

std::optional<SessionInfo> put_session(State &state, const SessionKey &key, std::optional<SessionInfo> next) {
    std::optional<SessionInfo> before;
    bool stays = false;
    auto it = state.sessions.find(key);
    if (it != state.sessions.end()) {
        before = it->second.info;
        count_stored(state, key, stored_by(*before), false);
        stays = next && next->seniority == before->seniority && next->status == before->status;
        if (!stays) count_session(state, key, it->second, false);
    }
    if (!next) {
        DCS_REQUIRE(it == state.sessions.end() || it->second.grains.empty(), "a session with grains goes as a whole");
        state.unpacked.erase(key);
        if (it != state.sessions.end()) state.sessions.erase(it);
        return before;
    }
    if (it == state.sessions.end()) it = state.sessions.emplace(key, Session{}).first;
    Session &session = it->second;
    session.info = std::move(*next);
    count_stored(state, key, stored_by(session.info), true);
    session.results.resize(static_cast<std::size_t>(session.info.result_count), -1);
    if (!stays) count_session(state, key, session, true);
    refresh_unpacked(state, key, session);
    return before;
}

// What its grains count for outside of their session.
void count_grains_outside(State &state, const SessionKey &key, const Session &session, bool in) {
    note_returns(state, key, session, in);
    if (session.counts[static_cast<int>(GrainStatus::running)] == 0 && session.with_files == 0) return;
    for (const auto &[number, g] : session.grains) {
        if (g.status() == GrainStatus::running) run_there(state, GrainKey{key, number}, g, in);
        count_files(state, key.user, g, in);
    }
}

// A whole session with its grains, out of State or back in. What is derived inside of it travels
// with it; what lies outside is kept in step here.
Session take_out(State &state, const SessionKey &key) {
    auto node = state.sessions.extract(key);
    DCS_REQUIRE(!node.empty(), "only an existing session can be erased");
    Session session = std::move(node.mapped());
    count_session(state, key, session, false);
    count_stored(state, key, stored_by(session.info) + session.own_trees, false);
    note_waiters(state, key, session.waiters, false);
    state.unpacked.erase(key);
    count_grains_outside(state, key, session, false);
    return session;
}

void put_back(State &state, const SessionKey &key, Session session) {
    count_grains_outside(state, key, session, true);
    count_session(state, key, session, true);
    count_stored(state, key, stored_by(session.info) + session.own_trees, true);
    note_waiters(state, key, session.waiters, true);
    refresh_unpacked(state, key, session);
    state.sessions.insert_or_assign(key, std::move(session));
}

// Many at once need one before-image: that there were none.
void add_grains(State &state, const SessionKey &key, const GrainList &grains) {
    const auto found = state.sessions.find(key);
    DCS_REQUIRE(found != state.sessions.end() && found->second.grains.empty(),
                "many grains are only added to a session without any");
    Session &session = found->second;
    for (const auto &[number, g] : grains) {
        count_grain(state, session, GrainKey{key, number}, g, true);
        session.grains.emplace_hint(session.grains.end(), number, g);
    }
    DCS_REQUIRE(session.grains.size() == grains.size(), "a grain is added twice");
    refresh_unpacked(state, key, session);
}

std::optional<Host> put_host(State &state, HostId id, std::optional<Host> next) {
    std::optional<Host> before;
    const auto index = static_cast<std::size_t>(id);
    DCS_REQUIRE(index <= state.hosts.size(), "hosts are numbered without gaps");
    if (index < state.hosts.size()) {
        index_host(state, id, state.hosts[index], false);
        before = std::move(state.hosts[index]);
    }
    if (next) {
        if (!before) {
            state.hosts.emplace_back();
            state.running.emplace_back();
            state.ahead.emplace_back();
            state.used.emplace_back();
        }
        if (before && before->config->name != next->config->name) state.host_ids.erase(before->config->name);
        if (!before || before->config->name != next->config->name) state.host_ids[next->config->name] = id;
        state.hosts[index] = std::move(*next);
        index_host(state, id, state.hosts[index], true);
        refresh_open(state, id);
    } else {
        DCS_REQUIRE(index + 1 == state.hosts.size() && state.running.back().empty(),
                    "only the last host can go, and without grains");
        state.host_ids.erase(before->config->name);
        state.hosts.pop_back();
        state.running.pop_back();
        state.ahead.pop_back();
        state.used.pop_back();
    }
    return before;
}

std::optional<AuthEntry> put_auth(State &state, const TokenHash &hash, std::optional<AuthEntry> next) {
    std::optional<AuthEntry> before;
    const auto it = state.auth.find(hash);
    if (it != state.auth.end()) before = std::move(it->second);
    if (next) state.auth.insert_or_assign(hash, std::move(*next));
    else if (it != state.auth.end()) state.auth.erase(it);
    return before;
}

std::vector<Waiter> put_waiters(State &state, const SessionKey &key, std::vector<Waiter> next) {
    const auto it = state.sessions.find(key);
    DCS_REQUIRE(it != state.sessions.end(), "only a session has waiters");
    note_waiters(state, key, it->second.waiters, false);
    note_waiters(state, key, next, true);
    return std::exchange(it->second.waiters, std::move(next));
}

// A grain that is set takes the place of one that was set aside.
std::string take_damaged(State &state, const GrainKey &key) {
    auto &damaged = state.sessions.at(key.session).damaged;
    const auto it = damaged.find(key.grain);
    if (it == damaged.end()) return {};
    std::string text = std::move(it->second);
    damaged.erase(it);
    return text;
}

// Before-images. What is large is boxed: most steps are of new entities, which had no image.
template <class T> std::unique_ptr<T> boxed(std::optional<T> value) {
    return value ? std::make_unique<T>(std::move(*value)) : nullptr;
}
template <class T> std::optional<T> unboxed(std::unique_ptr<T> value) {
    return value ? std::optional<T>(std::move(*value)) : std::nullopt;
}

struct WasAuth {
    TokenHash hash;
    std::optional<AuthEntry> entry;
};
struct WasSession {
    SessionKey key;
    std::unique_ptr<SessionInfo> info;
    std::uint64_t next_seniority;
};
struct WasErased {
    SessionKey key;
    std::unique_ptr<Session> session;
};
struct WasDamaged {
    SessionKey key;
    std::string why;
};
struct WasEmpty {
    SessionKey key;
};
struct WasGrain {
    GrainKey key;
    std::unique_ptr<Grain> grain;
    std::string damaged;  // it took the place of a damaged one
};
struct WasHost {
    HostId id;
    std::unique_ptr<Host> host;
};
struct WasWaiters {
    SessionKey key;
    std::vector<Waiter> waiters;
};
struct WasPolicy {
    std::unique_ptr<Policy> policy;
};
struct WasTrust {
    std::unique_ptr<Trust> trust;
};
struct WasSources {
    std::unique_ptr<Sources> sources;
};
struct WasClasses {
    HostClasses classes;
};
struct WasBackupHost {
    BackupHost host;
};
struct WasPending {
    std::unique_ptr<PendingHosts> pending;
};
struct WasHandedOver {
    std::string host;
    std::optional<HandedOver> up_to;
};
struct WasBackup {
    BackupLink link;
};
struct WasWaitingCall {
    std::string host;
    WaitingCall call;
};
using Step =
    std::variant<WasAuth, WasSession, WasErased, WasDamaged, WasEmpty, WasGrain, WasHost, WasWaiters, WasPolicy,
                 WasTrust, WasPending, WasSources, WasHandedOver, WasBackup, WasWaitingCall, WasBackupHost, WasClasses>;

WaitingCall put_waiting_call(State &state, const std::string &host, WaitingCall call) {
    WaitingCall before = std::exchange(state.waiting_calls[host], std::move(call));
    if (!state.waiting_calls[host]) state.waiting_calls.erase(host);
    return before;
}

struct Applier {
    State &state;
    std::deque<Step> &steps;

    void operator()(const SetAuth &c) { steps.push_back(WasAuth{c.hash, put_auth(state, c.hash, c.entry)}); }
    void operator()(const EraseAuth &c) { steps.push_back(WasAuth{c.hash, put_auth(state, c.hash, {})}); }
    void operator()(const SetSession &c) {
        require_sound(c.info);
        const std::uint64_t next = state.next_seniority;
        steps.push_back(WasSession{c.key, boxed(put_session(state, c.key, c.info)), next});
        if (age_in(c.info.seniority) >= next) state.next_seniority = age_in(c.info.seniority) + 1;
    }
    void operator()(const EraseSession &c) {
        steps.push_back(WasErased{c.key, std::make_unique<Session>(take_out(state, c.key))});
    }
    void operator()(const EraseDamaged &c) {
        auto node = state.set_aside.extract(c.key);
        DCS_REQUIRE(!node.empty(), "only a session that was set aside can be erased as one");
        steps.push_back(WasDamaged{c.key, std::move(node.mapped())});
    }
    void operator()(const AddGrains &c) {
        add_grains(state, c.key, *c.grains);
        steps.push_back(WasEmpty{c.key});
    }
    void operator()(const SetGrain &c) {
        require_sound(c.grain);
        if (c.volatile_only) require_as_recorded(state.grain(c.key), c.grain);
        steps.push_back(WasGrain{c.key, boxed(put_grain(state, c.key, c.grain)), take_damaged(state, c.key)});
    }
    void operator()(const EraseGrain &c) { steps.push_back(WasGrain{c.key, boxed(put_grain(state, c.key, {})), {}}); }
    void operator()(const SetHost &c) {
        require_sound(c.host);
        steps.push_back(WasHost{c.id, boxed(put_host(state, c.id, c.host))});
    }
    void operator()(const SetWaiters &c) { steps.push_back(WasWaiters{c.key, put_waiters(state, c.key, c.waiters)}); }
    void operator()(const SetPolicy &c) {
        steps.push_back(WasPolicy{std::make_unique<Policy>(std::exchange(state.policy, c.policy))});
    }
    void operator()(const SetTrust &c) {
        steps.push_back(WasTrust{std::make_unique<Trust>(std::exchange(state.trust, c.trust))});
    }
    void operator()(const SetClasses &c) { steps.push_back(WasClasses{std::exchange(state.classes, c.classes)}); }
    void operator()(const SetSources &c) {
        steps.push_back(WasSources{std::make_unique<Sources>(std::exchange(state.sources, c.sources))});
    }
    void operator()(const SetBackupHost &c) {
        steps.push_back(WasBackupHost{std::exchange(state.backup_host, c.host)});
    }
    void operator()(const SetPending &c) {
        auto before = std::make_unique<PendingHosts>(std::exchange(state.pending, c.pending));
        steps.push_back(WasPending{std::move(before)});
    }
    void operator()(const SetHandedOver &c) {
        const auto it = state.handed_over.find(c.host);
        DCS_REQUIRE(it == state.handed_over.end() || !it->second.covers(c.up_to), "reports are taken in once");
        steps.push_back(WasHandedOver{
            c.host, it == state.handed_over.end() ? std::nullopt : std::optional<HandedOver>(it->second)});
        state.handed_over[c.host] = c.up_to;
    }
    void operator()(const SetBackup &c) { steps.push_back(WasBackup{std::exchange(state.backup, c.link)}); }
    void operator()(const SetWaitingCall &c) {
        steps.push_back(WasWaitingCall{c.host, put_waiting_call(state, c.host, c.call)});
    }
    void operator()(const WriteFile &) {}
};

struct Restorer {
    State &state;

    void operator()(WasAuth &s) { put_auth(state, s.hash, std::move(s.entry)); }
    void operator()(WasSession &s) {
        put_session(state, s.key, unboxed(std::move(s.info)));
        state.next_seniority = s.next_seniority;
    }
    void operator()(WasErased &s) { put_back(state, s.key, std::move(*s.session)); }
    void operator()(WasGrain &s) {
        put_grain(state, s.key, unboxed(std::move(s.grain)));
        if (!s.damaged.empty()) state.sessions.at(s.key.session).damaged[s.key.grain] = std::move(s.damaged);
    }
    void operator()(WasDamaged &s) { state.set_aside.emplace(s.key, std::move(s.why)); }
    void operator()(WasEmpty &s) {
        SessionInfo info = take_out(state, s.key).info;
        put_session(state, s.key, std::move(info));
    }
    void operator()(WasHost &s) { put_host(state, s.id, unboxed(std::move(s.host))); }
    void operator()(WasWaiters &s) { put_waiters(state, s.key, std::move(s.waiters)); }
    void operator()(WasPolicy &s) { state.policy = std::move(*s.policy); }
    void operator()(WasTrust &s) { state.trust = std::move(*s.trust); }
    void operator()(WasSources &s) { state.sources = std::move(*s.sources); }
    void operator()(WasClasses &s) { state.classes = std::move(s.classes); }
    void operator()(WasBackupHost &s) { state.backup_host = std::move(s.host); }
    void operator()(WasHandedOver &s) {
        if (s.up_to) state.handed_over[s.host] = *s.up_to;
        else state.handed_over.erase(s.host);
    }
    void operator()(WasBackup &s) { state.backup = s.link; }
    void operator()(WasWaitingCall &s) { put_waiting_call(state, s.host, std::move(s.call)); }
    void operator()(WasPending &s) { state.pending = std::move(*s.pending); }
};

}  // namespace

struct Undo::Steps {
    std::deque<Step> list;  // a vector would move them about
};
Undo::Undo() : steps(std::make_unique<Steps>()) {}
Undo::~Undo() = default;
Undo::Undo(Undo &&) noexcept = default;
Undo &Undo::operator=(Undo &&) noexcept = default;

void apply(State &state, const Change &change, Undo &undo) {
    if (!undo.steps) undo.steps = std::make_unique<Undo::Steps>();
    std::visit(Applier{state, undo.steps->list}, change);
}

void roll_back(State &state, Undo &undo) {
    if (!undo.steps) return;
    auto &list = undo.steps->list;
    for (auto it = list.rbegin(); it != list.rend(); ++it) std::visit(Restorer{state}, *it);
    list.clear();
}

void load_session(State &state, const SessionKey &key, SessionInfo info, std::map<GrainNumber, Grain> grains,
                  std::map<GrainNumber, std::string> damaged) {
    state.next_seniority = std::max(state.next_seniority, age_in(info.seniority) + 1);
    put_session(state, key, std::move(info));
    Session &session = state.sessions.at(key);
    session.grains = std::move(grains);
    session.damaged = std::move(damaged);
    for (const auto &[number, g] : session.grains) count_grain(state, session, GrainKey{key, number}, g, true);
    refresh_unpacked(state, key, session);
}

bool durable(const Change &change) {
    if (const auto *grain = std::get_if<SetGrain>(&change)) return !grain->volatile_only;
    if (const auto *host = std::get_if<SetHost>(&change)) return host->durable;
    return !std::holds_alternative<SetPolicy>(change) && !std::holds_alternative<SetWaiters>(change) &&
           !std::holds_alternative<SetPending>(change) && !std::holds_alternative<SetSources>(change) &&
           !std::holds_alternative<SetBackup>(change) && !std::holds_alternative<SetWaitingCall>(change) &&
           !std::holds_alternative<SetBackupHost>(change) && !std::holds_alternative<SetClasses>(change);
}

}  // namespace dcs::core
