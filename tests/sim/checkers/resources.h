#pragma once
// Named resources: no index is had by two processes of a host at one time; nothing is started for which too little is
// left; and no grain gets a resource for which an earlier one has waited that the host could run.
#include <map>
#include <tuple>
#include <vector>

#include "base/resources.h"
#include "sim/host.h"
#include "scheduler/state/state.h"
#include "wire/message.h"

namespace dcs::sim {

class Resources {
public:
    explicit Resources(Clock &clock) : clock_(clock) {}
    void process_begins(int host, const Process &process, const std::map<server::GrainId, Process> &on_host);
    void before_turn(const core::State &state);
    void sends(ConnId conn, const wire::AnyMessage &message, const core::State &state);

private:
    // Its place among all: seniority, then the position in its session's queue.
    struct Waiting {
        std::uint64_t seniority;
        std::int64_t position;
        GrainKey key;
        Amounts asks;
    };
    void more_than_there_is(const GrainKey &key, const Amounts &asks, std::size_t host, const core::State &state);
    void overtakes(const GrainKey &key, const Amounts &asks, std::size_t host, const core::State &state);

    Clock &clock_;
    std::vector<Waiting> waiting_;
    std::map<GrainKey, std::pair<std::uint64_t, std::int64_t>> places_;  // of those that were ready before the turn
};

}  // namespace dcs::sim
