#pragma once
// The five screens, as lines that may have colours. They are as long as they have rows: the terminal shows a part.
#include <array>
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

// What the screens show, as the scheduler said it at one moment.
struct FlowLook {
    std::string session, why;  // why: there is none to show
    Flow flow;
};

struct Look {
    page::Snapshot pool;
    std::vector<wire::GrainRow> grains;    // the caller's running ones, those with the most CPU time first
    std::map<std::size_t, double> left_s;  // of the pool's sessions, by their places: the estimated time left
    page::Lanes lanes;
    std::deque<page::Happening> happenings;  // oldest first, as the moves
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

inline constexpr std::array<const char *, 5> screen_names = {"Hosts", "Sessions", "Time line", "Events", "Dataflow"};
inline constexpr std::size_t flow_screen = 4;

using Lines = std::vector<std::string>;

// Two lines: the pool in figures, and what there is to choose from.
Lines head_lines(const Look &look, std::size_t chosen);
Lines screen_lines(const Look &look, std::size_t chosen, std::size_t columns);

// At most so many, as a table.
std::string running_grains_text(const std::vector<wire::GrainRow> &grains, std::size_t most);
Lines flow_lines(const Look &look);
Lines time_lines(const Look &look, std::size_t columns);
// `text` in the colour of a code, such as "1" for bold, if there are colours.
std::string painted(const char *code, const std::string &text);
// The lines of a text, each with its line feed.
void append(Lines &lines, std::string_view text);

}  // namespace dcs::commands::top
