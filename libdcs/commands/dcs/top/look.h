#pragma once
// What a scheduler said of its pool at one moment, for the screens.
#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "commands/dcs/page/journal.h"
#include "commands/dcs/page/lanes.h"
#include "commands/dcs/page/snapshot.h"
#include "commands/dcs/query/scheduler.h"
#include "commands/dcs/trace/flow.h"

namespace dcs::commands::top {

struct FlowLook {
    std::string session, why;  // why: there is none to show
    Flow flow;
};

struct Look {
    page::Snapshot pool;
    std::vector<wire::GrainRow> grains;    // the caller's running ones, those with the most CPU time first
    std::map<std::size_t, double> left_s;  // of the pool's sessions, by their places: the estimated time left
    page::Lanes lanes;
    std::deque<page::Happening> happenings;  // in the order of the journal, as the moves
    std::deque<page::Move> moves;
    std::shared_ptr<const FlowLook> flow;  // once it is wanted
    bool of_others = false;                // sessions whose logs are not the caller's to read
    bool incomplete = false;               // older runs are missing
};

// The caller's running grains in these sessions, those with the most CPU time first.
std::vector<wire::GrainRow> running_grains(const std::vector<Session> &sessions);

// Looks every `interval_s`, less often where a look takes long, in a thread that never ends: it may be in a question
// when the process ends. `take` is called there.
// `wants_flow`: whether the log of a session is to be read for its dataflow.
void look_repeatedly(std::string directory, double interval_s, std::function<bool()> wants_flow,
                     std::function<void(std::shared_ptr<const Look>)> take);

}  // namespace dcs::commands::top
