#pragma once
// One acceptable lease of a grain at a time, one process of each, never more on a host than it has slots;
// what is taken comes from the newest lease; numbers of leases only grow.
#include <map>
#include <set>
#include <tuple>

#include "scheduler/state/state.h"
#include "sim/clock.h"
#include "sim/host.h"
#include "wire/message.h"

namespace dcs::sim {

class Leases {
public:
    explicit Leases(Clock &clock) : clock_(clock) {}
    void process_begins(int host, const Process &process, std::size_t on_host, std::int32_t slots);
    // A number of a removed session may come again after a restart.
    void started(const core::State &state);
    void sends(ConnId conn, const wire::AnyMessage &message, const core::State &state);
    // These submissions go, or have gone, or stay: no party learned it.
    void forgets(const SessionKey &key, const std::set<GrainNumber> &grains) {
        for (const GrainNumber grain : grains) forgotten_.insert({key, grain});
    }

private:
    using Grain = std::pair<std::uint64_t, GrainKey>;  // first: seniority, as numbers of sessions come again
    void begin_anew(GrainKey key, std::uint64_t seniority);
    void launched(ConnId conn, const wire::Launch &launch, const core::State &state);
    void acknowledged(const wire::ReportAck &ack, const core::State &state);
    void handed_over(const core::State &state);

    Clock &clock_;
    std::set<std::tuple<GrainKey, Incarnation, std::uint64_t>> processes_;
    struct Taken {
        Incarnation from = 0;
        std::uint32_t sequence = 0;
    };
    std::map<Grain, Incarnation> newest_;
    std::map<Grain, Taken> taken_;  // of whom something was taken last
    std::set<GrainKey> forgotten_;
    std::map<ConnId, std::int32_t> slots_;  // that the host learned last
};

}  // namespace dcs::sim
