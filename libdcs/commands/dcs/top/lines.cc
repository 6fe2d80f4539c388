// The time line of the last hour in characters: a line for each slot, time from left to right.
// The dataflow of a session: each decision of its control program, with the grains that it submitted.
#include "screens.h"

#include <algorithm>

#include "base/text.h"
#include "commands/dcs/frame/table.h"
#include "commands/dcs/page/html.h"

namespace dcs::commands::top {
namespace {

constexpr std::size_t name_columns = 12, least_plot = 8, moves_shown = 10;
constexpr int columns_of_mark = 12;

struct Cell {
    char sign = ' ';
    unsigned colour = 0;  // 1..6
};

class Plot {
public:
    Plot(const page::Lanes &lanes, std::size_t columns) : lanes_(lanes), columns_(columns) {}

    std::size_t column_of(std::int64_t ms) const {
        const double share = static_cast<double>(ms - lanes_.from_ms) / static_cast<double>(lanes_.span_ms());
        return static_cast<std::size_t>(std::clamp(share, 0.0, 1.0) * static_cast<double>(columns_ - 1));
    }
    std::string axis() const;
    void add_host(Lines &lines, const page::HostRuns &host) const;

private:
    void mark(std::vector<Cell> &row, const page::Placed &placed) const;

    const page::Lanes &lanes_;
    const std::size_t columns_;
};

std::string Plot::axis() const {
    std::string r(columns_, ' ');
    const std::int64_t step_s = page::axis_step_s(lanes_, std::max(1, static_cast<int>(columns_) / columns_of_mark));
    for (std::int64_t ago_s = 0; ago_s * 1000 <= lanes_.span_ms(); ago_s += step_s) {
        const std::string text = page::ago_text(ago_s) + "|";
        const std::size_t end = column_of(lanes_.to_ms - ago_s * 1000) + 1;
        if (end >= text.size()) r.replace(end - text.size(), text.size(), text);
    }
    return r;
}

// "[77^77~]": the last digit of its session, checkpoints, what is done again elsewhere, the departure.
void Plot::mark(std::vector<Cell> &row, const page::Placed &placed) const {
    const page::Run &run = placed.run;
    const std::size_t from = column_of(placed.from_ms), to = column_of(placed.to_ms);
    const unsigned session = static_cast<unsigned>(run.session.second);
    const auto put = [&](std::size_t at, char sign) { row[at] = {sign, session % 6 + 1}; };
    for (std::size_t i = from; i <= to; ++i) put(i, static_cast<char>('0' + session % 10));
    const bool left = !run.reason.empty() && run.reason != "finished";
    if (left) {
        const std::size_t kept =
            run.checkpoints_ms.empty() ? from : std::max(from, column_of(run.checkpoints_ms.back()));
        for (std::size_t i = kept; i <= to; ++i) put(i, '~');
    }
    for (const std::int64_t at : run.checkpoints_ms)
        if (at >= lanes_.from_ms) put(column_of(at), '^');
    if (run.from_ms >= lanes_.from_ms) put(from, '[');
    if (left) put(to, 'x');
}

void Plot::add_host(Lines &lines, const page::HostRuns &host) const {
    std::vector<std::vector<Cell>> rows(host.lanes, std::vector<Cell>(columns_));
    for (const page::Placed &placed : host.runs) mark(rows[placed.lane], placed);
    const bool colours = has_colour();
    std::string name = shortened(printable(host.host), name_columns);
    for (const std::vector<Cell> &row : rows) {
        std::string line = name + std::string(name_columns + 1 - width_of(name), ' ');
        unsigned colour = 0;
        for (const Cell &cell : row) {
            if (colours && cell.colour != colour)
                line += cell.colour == 0 ? "\033[0m" : "\033[3" + std::to_string(cell.colour) + "m";
            colour = cell.colour;
            line += cell.sign;
        }
        lines.push_back(colours && colour != 0 ? line + "\033[0m" : line);
        name.clear();
    }
}

constexpr std::size_t decisions_shown = 500, groups_shown = 2000;

std::string results(std::uint32_t known) { return counted(known, "result"); }

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

std::string painted(const char *code, const std::string &text) {
    return has_colour() ? std::string("\033[") + code + "m" + text + "\033[0m" : text;
}

void append(Lines &lines, std::string_view text) {
    while (!text.empty()) lines.emplace_back(take_line(text));
}

Lines time_lines(const Look &look, std::size_t columns) {
    if (look.lanes.hosts.empty()) return {"No grain has run in the last hour, of those whose logs you may read."};
    const std::size_t used = name_columns + 1;
    const Plot plot(look.lanes, std::max(least_plot, columns - std::min(columns, used)));
    Lines lines = {std::string(used, ' ') + plot.axis()};
    for (const page::HostRuns &host : look.lanes.hosts) plot.add_host(lines, host);
    lines.emplace_back("[ start  0-9 last digit of the session  ^ checkpoint  ~ done again elsewhere  x left its host");
    if (look.incomplete) lines.emplace_back("More has happened than is kept: the oldest runs are missing.");
    if (look.moves.empty()) return lines;
    lines.emplace_back();
    lines.push_back(painted("1", "Grains that left a host") + ", the latest first");
    for (const page::Move *it : page::latest_of(look.moves, moves_shown))
        lines.push_back(page::clock_time(it->at_ms) + "  " +
                        printable(page::to_text(it->session) + ":" + std::to_string(it->grain) + " left " + it->host +
                                  ": " + it->reason + (it->detail.empty() ? "" : " (" + it->detail + ")")));
    return lines;
}

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
