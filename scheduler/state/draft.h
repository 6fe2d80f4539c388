#pragma once
// A decision in the making. Decisions edit working copies of entities here; finish() turns the
// copies into changes in an order that apply accepts (sessions before their grains). The State
// itself stays as it is.
#include <set>

#include "base/status.h"
#include "scheduler/state/decision.h"

namespace dcs::core {

class Draft {
public:
    Draft(const State &before, Instant instant) : state(before), now(instant) {}

    const State &state;
    const Instant now;

    // Working copies, made on first use from what State holds. The entity must exist; info() of a
    // new session starts from nothing.
    SessionInfo &info(const SessionKey &key);
    Grain &grain(const GrainKey &key);
    Grain &new_grain(const GrainKey &key);
    Host &host(HostId id);
    Host &host_durably(HostId id);  // what d_sethost set: committed before anything is said
    std::vector<Waiter> &waiters(const SessionKey &key);
    // The grain's change touches volatile fields only, see SetGrain.
    void volatile_only(const GrainKey &key) {
        DCS_REQUIRE(grains_.count(key) != 0, "what was not edited did not change");
        volatile_only_.insert(key);
    }

    void change(Change change) { out_.changes.push_back(std::move(change)); }
    void write(const GrainKey &key, File file, std::uint64_t old_length, Payload bytes);
    void effect(Effect effect) { out_.effects.push_back(std::move(effect)); }
    void reply(const Caller &caller, wire::AnyMessage message);
    void refuse(const Caller &caller, const Status &why);
    // To a grain server, if it is connected; otherwise it learns it at its next first call.
    void send(HostId host, wire::AnyMessage message);
    void withdraw(HostId host, const GrainKey &key, Incarnation incarnation, bool discard, std::string reason);
    // The same, for a grain that has not started by then.
    void call_back(HostId host, const GrainKey &key, Incarnation incarnation, std::string reason);
    void follow_up(Input input) { out_.follow_ups.push_back(std::move(input)); }
    void event(std::string text) { out_.events.push_back(std::move(text)); }
    void looked_at(std::size_t grains) { out_.looked_at += grains; }
    // Who asked for what, and the draft's answer so far; unless it is already logged.
    void audit(const Caller &caller, const std::string &what);

    // Next free position at either end of the session's queue.
    std::int64_t take_front(const SessionKey &key) { return --info(key).queue_front; }
    std::int64_t take_back(const SessionKey &key) { return info(key).queue_back++; }

    Decision finish();

private:
    Decision out_;
    std::map<SessionKey, SessionInfo> infos_;
    std::map<GrainKey, Grain> grains_;
    std::set<GrainKey> volatile_only_;
    std::map<HostId, Host> hosts_;
    std::set<HostId> durable_hosts_;
    std::map<SessionKey, std::vector<Waiter>> waiters_;
};

}  // namespace dcs::core
