#pragma once
// What every inhabitant of a world may use of it: time, the queue, a way to complain, a trace.
#include <cstdio>
#include <deque>
#include <string>

#include "sim/plan.h"
#include "sim/queue.h"
#include "sim/random.h"

namespace dcs::sim {

class Clock {
public:
    explicit Clock(const Plan &with) : plan(with) {}

    void put(Instant at, Handler *who, std::uint32_t name, std::uint32_t what, std::uint64_t arg) {
        queue.put(std::max(at, now), who, name, what, arg);
    }
    // Part of the history, by which two runs are compared.
    void mark(std::uint64_t what) { hash = mix(hash, what); }
    // The first complaint ends the run.
    void complain(const std::string &checker, const std::string &what) {
        if (wrong.empty()) wrong = checker + ": " + what;
    }
    bool fine() const { return wrong.empty(); }
    // One line of the trace; call it only if tracing.
    void note(const std::string &line) {
        char time[32];
        std::snprintf(time, sizeof time, "%12.6f ", static_cast<double>(now.ns) / 1e9);
        if (print) std::printf("%s%s\n", time, line.c_str());
        lines.push_back(time + line);
        if (lines.size() > 40) lines.pop_front();
    }

    const Plan &plan;
    Queue queue;
    Instant now{seconds(1000).ns};
    std::uint64_t hash = 1, events = 0;
    std::string wrong;
    bool tracing = false, print = false;
    bool healed = false;  // no more faults, everything works again
    std::deque<std::string> lines;
};

}  // namespace dcs::sim
