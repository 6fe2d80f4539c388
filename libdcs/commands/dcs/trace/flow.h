#pragma once
// The dataflow graph of a session's computation. A control program is sequential: all that it submits may follow from
// all that it was given before. So the graph has its decisions in a row, each with what it submitted or killed then,
// and from each grain an edge to the decision before which its result (or, unfinished, something of it) was given.
#include <cstdint>
#include <string>
#include <vector>

#include "wire/history.h"

namespace dcs::commands {

struct Flow {
    struct Grains {  // one, or many that nothing but their numbers tells apart
        std::vector<std::int32_t> numbers;
        int from = 0;  // the decision that submitted them
        int to = -1;   // the one to which their results went; -1: to none (yet)
        int killed_by = -1;
        wire::GrainState state = wire::GrainState::ready;
        bool failed = false;        // they ended so
        std::vector<int> shown_to;  // decisions before which something unfinished of them was shown
    };
    struct Decision {
        std::uint32_t known = 0;
    };                                // results that were known
    std::vector<Decision> decisions;  // in their order
    int end = -1;                     // this "decision" only took the last results
    std::vector<Grains> grains;       // in the order of submission
};
// Groups of more than `together` alike become one.
Flow flow_of(const wire::History &history, std::size_t together);

std::string name_of(const Flow::Grains &grains);  // "grain 7", "grains 1-16"
std::string flow_dot(const Flow &flow, const std::string &title);
std::string flow_svg(const Flow &flow, const std::string &title);

// Hosts from top to bottom, time from left to right; what ran where, checkpoints, moves, the control program.
std::string time_svg(const wire::History &history, const std::string &title);

const char *colour_of(const Flow::Grains &g);  // of a box, by what became of them

}  // namespace dcs::commands
