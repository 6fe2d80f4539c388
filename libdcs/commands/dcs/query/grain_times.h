#pragma once
// When a grain was submitted, when it ran and when it ended, by the scheduler's clock.
#include <cstdint>
#include <string>

#include "wire/history.h"

namespace dcs::commands {

struct GrainTimes {
    std::int64_t submitted_ms = -1, started_ms = -1, ended_ms = -1;  // -1: not, or not known; the start of its last run
    double elapsed_s = 0;                                            // on hosts, in all runs
    int runs = 0;
};
// now_ms: the end so far of a run that has not ended.
GrainTimes times_of(const wire::GrainHistory &grain, std::int64_t now_ms);

std::string times_text(const GrainTimes &times);  // lines as of grain_facts
// {"submitted_s":...,"started_s":...,"ended_s":...,"elapsed_s":...}, null for what is not known. nullptr: no event log.
std::string json_of(const GrainTimes *times);

}  // namespace dcs::commands
