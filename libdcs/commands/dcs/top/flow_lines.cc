// The dataflow of a session: each decision of its control program, with the grains that it submitted.
#include "commands/dcs/frame/colour.h"
#include "commands/dcs/frame/table.h"
#include "screens.h"

namespace dcs::commands::top {
namespace {

constexpr std::size_t decisions_shown = 500, groups_shown = 2000;

std::string results(std::uint32_t known) { return counted(static_cast<std::int64_t>(known), "result"); }

const char *what_became(const Flow::Grains &g) {
    switch (g.state) {
    case wire::GrainState::killed: return "killed";
    case wire::GrainState::running: return "running";
    case wire::GrainState::finished: return g.failed ? "failed" : "finished";
    default: return "ready";
    }
}

std::string line_of(const Flow &flow, const Flow::Grains &g) {
    const std::string state = what_became(g);
    const auto known_at = [&](int decision) { return flow.decisions[static_cast<std::size_t>(decision)].known; };
    std::string line = "    " + name_of(g) + ": " + (has_colour() ? coloured(state, state) : state);
    for (const int shown : g.shown_to) line += ", seen unfinished at " + results(known_at(shown));
    if (g.killed_by >= 0) line += " at " + results(known_at(g.killed_by));
    if (g.to >= 0 && g.to == flow.end) line += " -> end";
    else if (g.to >= 0) line += " -> decision at " + results(known_at(g.to));
    else if (g.state == wire::GrainState::finished) line += ", result not taken yet";
    return line;
}

}  // namespace

Lines flow_lines(const Look &look) {
    if (!look.flow) return {"Reading the log of a session ..."};
    const FlowLook &shown = *look.flow;
    if (!shown.why.empty()) return {shown.why};
    const Flow &flow = shown.flow;
    Lines lines = {painted("1", "Session " + shown.session) + ": what followed from which results"};
    std::vector<std::vector<const Flow::Grains *>> submitted(flow.decisions.size());
    for (const Flow::Grains &g : flow.grains) submitted[static_cast<std::size_t>(g.from)].push_back(&g);
    std::size_t groups = 0;
    for (std::size_t i = 0; i < flow.decisions.size() && i < decisions_shown; ++i) {
        const bool last = static_cast<int>(i) == flow.end;
        lines.push_back((i == 0 ? "begin"
                         : last ? "end"
                                : "decision") +
                        (i == 0 ? std::string() : " at " + results(flow.decisions[i].known)));
        for (const Flow::Grains *g : submitted[i])
            if (++groups <= groups_shown) lines.push_back(line_of(flow, *g));
    }
    if (flow.decisions.size() > decisions_shown || groups > groups_shown)
        lines.push_back("The rest: dcs trace " + shown.session + " --graph FILE");
    return lines;
}

}  // namespace dcs::commands::top
