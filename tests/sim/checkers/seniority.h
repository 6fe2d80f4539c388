#pragma once
// A free slot goes to the oldest session that has a grain for it. Looked at in a sample of turns: what
// was ready before the turn and still is after it, while a younger session's grain was started, waited
// behind it.
#include <vector>

#include "scheduler/state/state.h"
#include "sim/clock.h"
#include "wire/message.h"

namespace dcs::sim {

class Seniority {
public:
    explicit Seniority(Clock &clock) : clock_(clock) {}
    void before_turn(const core::State &state);
    void sends(ConnId conn, const wire::AnyMessage &message, const core::State &state);
    // A ready grain that a host with a free slot would take right now; "" if there is none.
    static std::string overlooked(const core::State &state, Instant now);

private:
    struct Waiting {
        std::uint64_t seniority;
        GrainKey key;
    };
    static bool suits(const core::State &state, std::size_t host, const SessionKey &key, const core::Grain &grain);

    Clock &clock_;
    std::uint64_t turns_ = 0;
    std::vector<Waiting> waiting_;
};

}  // namespace dcs::sim
