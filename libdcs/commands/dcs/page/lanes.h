#pragma once
// The runs of the last hour, in a lane for each slot of their hosts.
#include <cstdint>
#include <string>
#include <vector>

#include "journal.h"
#include "snapshot.h"

namespace dcs::commands::page {

struct Placed {
    Run run;
    std::int64_t from_ms = 0, to_ms = 0;  // as drawn
    std::size_t lane = 0;
};

struct HostRuns {
    std::string host;
    std::size_t lanes = 1;
    std::vector<Placed> runs;  // in the order of their starts
};

struct Lanes {
    std::int64_t from_ms = 0, to_ms = 0;  // from the first run, at most an hour ago and at least a minute; until now
    std::vector<HostRuns> hosts;          // those with runs, by name
    std::int64_t span_ms() const { return to_ms - from_ms; }
};

Lanes lanes_of(const Snapshot &s, const Journal &journal, std::int64_t now_ms);
// Seconds from one mark of the time axis to the next: at most `most` marks.
std::int64_t axis_step_s(const Lanes &lanes, int most);
// "now", "30 s ago", "10 min ago"
std::string ago_text(std::int64_t ago_s);

}  // namespace dcs::commands::page
