// The only writer of State. Each entity has one function that takes it from what it is to what it shall be and keeps
// everything derived in step; apply and roll_back both go through it, so a roll-back cannot forget a consequence.
#include <algorithm>
#include <deque>
#include <functional>
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
    const auto it = session.grains.lower_bound(key.grain);
    const bool exists = it != session.grains.end() && it->first == key.grain;
    if (exists) {
        before = std::move(it->second);
        count_grain(state, session, key, *before, false);
    }
    if (next) {
        count_grain(state, session, key, *next, true);
        if (exists) it->second = std::move(*next);
        else session.grains.emplace_hint(it, key.grain, std::move(*next));
    } else if (exists) {
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
    session.results.resize(static_cast<std::size_t>(session.info.result_count));
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
    session.info.decided = decided_in(session.grains);
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
    const std::size_t hosts = state.hosts.size();
    DCS_REQUIRE(state.running.size() == hosts && state.ahead.size() == hosts && state.used.size() == hosts,
                "each host has its lists");
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

WaitingCall put_waiting_call(State &state, const std::string &host, WaitingCall call) {
    WaitingCall before = std::exchange(state.waiting_calls[host], std::move(call));
    if (!state.waiting_calls[host]) state.waiting_calls.erase(host);
    return before;
}

// Takes a change back. What is large is boxed: most changes are of new entities, of which there was nothing before.
using Step = std::function<void(State &)>;
template <class T> std::shared_ptr<T> boxed(std::optional<T> value) {
    return value ? std::make_shared<T>(std::move(*value)) : nullptr;
}
template <class T> std::optional<T> unboxed(const std::shared_ptr<T> &value) {
    return value ? std::optional<T>(std::move(*value)) : std::nullopt;
}

// Each change beside the step that takes it back.
struct Applier {
    State &state;
    std::deque<Step> &steps;

    template <class Field> void replace(Field State::*field, const Field &next) {
        steps.push_back(
            [field, before = std::exchange(state.*field, next)](State &s) mutable { s.*field = std::move(before); });
    }
    template <class Value> void put(std::map<std::string, Value> State::*map, const std::string &user, Value next) {
        const auto found = (state.*map).find(user);
        const auto before = found == (state.*map).end() ? std::optional<Value>() : found->second;
        steps.push_back([map, user, before](State &s) {
            if (before) (s.*map)[user] = *before;
            else (s.*map).erase(user);
        });
        (state.*map)[user] = next;
    }
    void auth(const TokenHash &hash, std::optional<AuthEntry> next) {
        steps.push_back([hash, before = put_auth(state, hash, std::move(next))](State &s) mutable {
            put_auth(s, hash, std::move(before));
        });
    }

    void operator()(const SetAuth &c) { auth(c.hash, c.entry); }
    void operator()(const EraseAuth &c) { auth(c.hash, {}); }
    void operator()(const SetSession &c) {
        require_sound(c.info);
        const std::uint64_t next = state.next_seniority;
        steps.push_back([key = c.key, before = boxed(put_session(state, c.key, c.info)), next](State &s) {
            put_session(s, key, unboxed(before));
            s.next_seniority = next;
        });
        if (age_in(c.info.seniority) >= next) state.next_seniority = age_in(c.info.seniority) + 1;
    }
    void operator()(const EraseSession &c) {
        steps.push_back([key = c.key, before = std::make_shared<Session>(take_out(state, c.key))](State &s) {
            put_back(s, key, std::move(*before));
        });
    }
    void operator()(const EraseDamaged &c) {
        auto node = state.set_aside.extract(c.key);
        DCS_REQUIRE(!node.empty(), "only a session that was set aside can be erased as one");
        steps.push_back([key = c.key, why = std::move(node.mapped())](State &s) { s.set_aside.emplace(key, why); });
    }
    void operator()(const AddGrains &c) {
        add_grains(state, c.key, *c.grains);
        steps.push_back([key = c.key](State &s) { put_session(s, key, std::move(take_out(s, key).info)); });
    }
    void operator()(const SetGrain &c) {
        require_sound(c.grain);
        if (c.volatile_only) require_as_recorded(state.grain(c.key), c.grain);
        auto before = boxed(put_grain(state, c.key, c.grain));
        steps.push_back([key = c.key, before, damaged = take_damaged(state, c.key)](State &s) {
            put_grain(s, key, unboxed(before));
            if (!damaged.empty()) s.sessions.at(key.session).damaged[key.grain] = damaged;
        });
    }
    void operator()(const EraseGrain &c) {
        steps.push_back([key = c.key, before = boxed(put_grain(state, c.key, {}))](State &s) {
            put_grain(s, key, unboxed(before));
        });
    }
    void operator()(const SetHost &c) {
        require_sound(c.host);
        steps.push_back(
            [id = c.id, before = boxed(put_host(state, c.id, c.host))](State &s) { put_host(s, id, unboxed(before)); });
    }
    void operator()(const SetWaiters &c) {
        steps.push_back(
            [key = c.key, before = put_waiters(state, c.key, c.waiters)](State &s) { put_waiters(s, key, before); });
    }
    void operator()(const SetHandedOver &c) {
        const auto it = state.handed_over.find(c.host);
        DCS_REQUIRE(it == state.handed_over.end() || !it->second.covers(c.up_to), "reports are taken in once");
        const bool known = it != state.handed_over.end();
        steps.push_back([host = c.host, known, before = known ? it->second : HandedOver{}](State &s) {
            if (known) s.handed_over[host] = before;
            else s.handed_over.erase(host);
        });
        state.handed_over[c.host] = c.up_to;
    }
    void operator()(const SetLastNumber &c) {
        put(&State::last_numbers, c.user, c.number);
        put(&State::last_leases, c.user, c.lease);
    }
    void operator()(const SetWaitingCall &c) {
        steps.push_back([host = c.host, before = put_waiting_call(state, c.host, c.call)](State &s) {
            put_waiting_call(s, host, before);
        });
    }
    void operator()(const SetPolicy &c) { replace(&State::policy, c.policy); }
    void operator()(const SetTrust &c) { replace(&State::trust, c.trust); }
    void operator()(const SetClasses &c) { replace(&State::classes, c.classes); }
    void operator()(const SetSources &c) { replace(&State::sources, c.sources); }
    void operator()(const SetBackupHost &c) { replace(&State::backup_host, c.host); }
    void operator()(const SetPending &c) { replace(&State::pending, c.pending); }
    void operator()(const SetBackup &c) { replace(&State::backup, c.link); }
    void operator()(const WriteFile &) {}
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
    for (auto step = list.rbegin(); step != list.rend(); ++step) (*step)(state);
    list.clear();
}

bool Settled::take(const Grain &g) {
    if (!g.is_over() || g.own_tree || g.files.get() != GrainFiles()) return false;
    ++counts[static_cast<int>(g.status())];
    failed += g.has_failed();
    saved_us += static_cast<std::uint64_t>(g.course->kept->saved);
    return true;
}

void Settled::add(const Settled &more) {
    for (std::size_t i = 0; i < std::size(counts); ++i) counts[i] += more.counts[i];
    failed += more.failed;
    saved_us += more.saved_us;
}

void load_session(State &state, const SessionKey &key, LoadedSession loaded, const Sifted &sifted) {
    state.next_seniority = std::max(state.next_seniority, age_in(loaded.info.seniority) + 1);
    put_session(state, key, std::move(loaded.info));
    Session &session = state.sessions.at(key);
    session.grains = std::move(loaded.grains);
    session.damaged = std::move(loaded.damaged);
    loaded.results.resize(session.results.size(), -1);
    for (const auto at : sifted.others)  // count_grain() puts them in
        if (const auto *end = std::get_if<Finished>(&at->second.phase))
            loaded.results[static_cast<std::size_t>(end->result_index)] = -1;
    session.results = ResultOrder(std::move(loaded.results));
    std::copy(std::begin(sifted.settled.counts), std::end(sifted.settled.counts), session.counts);
    session.failed = sifted.settled.failed;
    session.saved_us = sifted.settled.saved_us;
    for (const auto at : sifted.others) count_grain(state, session, GrainKey{key, at->first}, at->second, true);
    session.info.decided = decided_in(session.grains);
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
