#include "scheduler/state/draft.h"

namespace dcs::core {

SessionInfo &Draft::info(const SessionKey &key) {
    auto it = infos_.find(key);
    if (it == infos_.end()) {
        const Session *session = state.session(key);
        it = infos_.emplace(key, session ? session->info : SessionInfo{}).first;
    }
    return it->second;
}

Grain &Draft::grain(const GrainKey &key) {
    auto it = grains_.find(key);
    if (it == grains_.end()) {
        const Grain *grain = state.grain(key);
        DCS_REQUIRE(grain, "only an existing grain can be edited");
        it = grains_.emplace(key, *grain).first;
    }
    return it->second;
}

Grain &Draft::new_grain(const GrainKey &key) {
    DCS_REQUIRE(!state.grain(key), "the grain exists");
    return grains_[key];
}

Host &Draft::host(HostId id) {
    auto it = hosts_.find(id);
    if (it == hosts_.end()) {
        const Host *host = state.host(id);
        DCS_REQUIRE(host, "only a known host can be edited");
        it = hosts_.emplace(id, *host).first;
    }
    return it->second;
}

Host &Draft::host_durably(HostId id) {
    durable_hosts_.insert(id);
    return host(id);
}

std::vector<Waiter> &Draft::waiters(const SessionKey &key) {
    auto it = waiters_.find(key);
    if (it == waiters_.end()) {
        const Session *session = state.session(key);
        DCS_REQUIRE(session, "only an existing session has waiters");
        it = waiters_.emplace(key, session->waiters).first;
    }
    return it->second;
}

void Draft::write(const GrainKey &key, File file, std::uint64_t old_length, Payload bytes) {
    out_.changes.push_back(WriteFile{key, file, old_length, std::move(bytes)});
}

void Draft::reply(const Caller &caller, wire::AnyMessage message) {
    DCS_REQUIRE(caller.conn != no_connection, "a reply goes to a connection");
    effect(Reply{caller.conn, caller.request, std::move(message)});
}

void Draft::refuse(const Caller &caller, const Status &why) {
    DCS_REQUIRE(!why, "a refusal has a reason");
    reply(caller, wire::ErrorReply{static_cast<std::int32_t>(why.code), why.text});
}

void Draft::send(HostId id, wire::AnyMessage message) {
    const Host *host = state.host(id);
    if (host && host->conn != no_connection) effect(SendServer{host->conn, std::move(message)});
}

void Draft::withdraw(HostId host, const GrainKey &key, Incarnation incarnation, bool discard, std::string reason) {
    send(host, wire::Withdraw{wire::wire_of(key), incarnation, discard, std::move(reason)});
}

void Draft::call_back(HostId host, const GrainKey &key, Incarnation incarnation, std::string reason) {
    send(host, wire::Withdraw{wire::wire_of(key), incarnation, false, std::move(reason), true});
}

void Draft::audit(const Caller &caller, const std::string &what) {
    std::string result = "done";
    for (const Effect &e : out_.effects) {
        if (std::holds_alternative<Reread>(e)) return;  // its outcome is not known yet: turn/effects.cc
        const auto *reply = std::get_if<Reply>(&e);
        if (!reply || reply->conn != caller.conn) continue;
        if (const auto *error = std::get_if<wire::ErrorReply>(&reply->message))
            result = std::string(code_name(static_cast<Code>(error->code))) + ", " + error->text;
    }
    for (const std::string &told : out_.events)
        if (is_audit(told)) return;  // in words of its own
    event("audit: " + caller.user + " asked to " + what + ": " + result);
}

Decision Draft::finish() {
    std::vector<Change> changes;
    changes.reserve(infos_.size() + grains_.size() + out_.changes.size() + hosts_.size() + waiters_.size());
    for (auto &[key, info] : infos_) changes.push_back(SetSession{key, std::move(info)});
    for (auto &[key, grain] : grains_) {
        const bool lazy = volatile_only_.count(key) != 0;
        changes.push_back(SetGrain{key, std::move(grain), lazy});
    }
    for (auto &change : out_.changes) changes.push_back(std::move(change));
    for (auto &[id, host] : hosts_) changes.push_back(SetHost{id, std::move(host), durable_hosts_.count(id) != 0});
    for (auto &[key, waiters] : waiters_) changes.push_back(SetWaiters{key, std::move(waiters)});
    out_.changes = std::move(changes);
    return std::move(out_);
}

}  // namespace dcs::core
