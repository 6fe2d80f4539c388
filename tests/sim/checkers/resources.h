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
    // Where a grain was that was ready before the turn. One that a host got and lost within the turn comes back further
    // to the front: so many incarnations have no place here.
    struct Place {
        std::uint64_t seniority;
        std::int64_t position;
        Incarnation last;
    };
    // Its place among all: seniority, then the position in its session's queue.
    struct Waiting {
        std::uint64_t seniority;
        std::int64_t position;
        GrainKey key;
        Amounts asks;
    };
    void more_than_there_is(const GrainKey &key, const Amounts &asks, std::size_t host, const core::State &state);
    void overtakes(const GrainKey &key, Incarnation incarnation, const Amounts &asks, std::size_t host,
                   const core::State &state);

    Clock &clock_;
    std::vector<Waiting> waiting_;
    std::map<GrainKey, Place> places_;
};

}  // namespace dcs::sim
