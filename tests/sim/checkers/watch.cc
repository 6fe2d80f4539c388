#include "sim/checkers/watch.h"

namespace dcs::sim {
namespace {
constexpr std::uint64_t promises_every = 64, durable_every = 512;  // turns
}

void Watch::started(const core::State &state, store::Store &store) {
    if (off()) return;
    durable.started(state, store);
    promises.compare(state);
    leases.started(state);
    grace.started();
}

void Watch::before_turn(const core::State &state) {
    if (off()) return;
    grace.before_turn();
    seniority.before_turn(state);
    resources.before_turn(state);
}

void Watch::after_turn(const core::State &state, store::Store &store) {
    if (off()) return;
    ++turns_;
    if (after_each_turn) after_each_turn();
    grace.after_turn(state, scheduler_.awake_since());
    if (turns_ % 8 == 0)
        if (const std::string what = core::check(state); !what.empty()) clock_.complain("state", what);
    if (turns_ % promises_every == 0) promises.compare(state);
    if (turns_ % durable_every == 0) durable.compare(state, store);
}

void Watch::sends(ConnId conn, const wire::AnyMessage &message, const core::State &state) {
    if (off()) return;
    if (before_sending) before_sending(conn, message, state);
    leases.sends(conn, message, state);
    seniority.sends(conn, message, state);
    resources.sends(conn, message, state);
}

void Watch::hears(ConnId conn, const wire::FrameHeader &header) {
    clock_.mark(header.crc);
    static const std::uint16_t call_in = wire::AnyMessage(wire::CallIn{}).index() + 1;
    if (!off()) grace.hears(conn, header.kind != call_in);
}

void Watch::lost(const core::State &state, bool in_flight, std::uint64_t turn) {
    if (!off()) durable.lost(state, in_flight, turn);
}

void Watch::process_begins(int host, const Process &process, const std::map<server::GrainId, Process> &on_host,
                           std::int32_t slots) {
    if (off()) return;
    leases.process_begins(host, process, on_host.size(), slots);
    resources.process_begins(host, process, on_host);
}

void Watch::asks(const SessionKey &key, const wire::AnyMessage &call) { promises.asks(key, call); }

void Watch::told(const SessionKey &key, const Script &script, const wire::AnyMessage &call,
                 const wire::AnyMessage &reply) {
    if (!std::holds_alternative<wire::ErrorReply>(reply)) progress_ = clock_.now;
    if (clock_.tracing) clock_.note(to_text(key) + ": " + wire::kind_name(call) + " -> " + wire::kind_name(reply));
    promises.told(key, script, call, reply, scheduler_.state());
}

void Watch::complete(const SessionKey &key, const Course &course) {
    promises.complete(key, course, scheduler_.state());
}

void Watch::forgets(const SessionKey &key, const Forgotten &what) {
    promises.forgets(key, what);
    leases.forgets(key, what.gone);
}

}  // namespace dcs::sim
