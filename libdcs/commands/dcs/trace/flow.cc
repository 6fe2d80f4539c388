#include "flow.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "svg.h"
#include "commands/dcs/frame/table.h"

namespace dcs::commands {
namespace {

using wire::GrainHistory;
using wire::GrainState;

class Builder {
public:
    explicit Builder(const wire::History &history) : history_(history) {
        for (const auto &[number, g] : history.grains) order_.emplace_back(g.order, number);
        std::sort(order_.begin(), order_.end());
    }

    Flow build() {
        for (const auto &[order, number] : order_) submit(number, history_.grains.at(number));
        for (const auto &[order, number] : order_) kill(number, history_.grains.at(number));
        take_results();
        return std::move(flow_);
    }

private:
    // One that was made for it, or the last one if the control program knew no more now than then.
    int decision(std::uint32_t known, bool peeked) {
        if (flow_.decisions.empty() || flow_.decisions.back().known != known || peeked)
            flow_.decisions.push_back({known});
        return static_cast<int>(flow_.decisions.size()) - 1;
    }
    void submit(std::int32_t number, const GrainHistory &g) {
        Flow::Grains one;
        one.numbers = {number};
        one.from = decision(g.known, !g.peeked.empty());
        one.state = g.state;
        one.failed = g.state == GrainState::finished && (g.code != 0 || g.signal != 0);
        for (const std::int32_t other : g.peeked)
            if (const auto at = index_.find(other); at != index_.end())
                flow_.grains[at->second].shown_to.push_back(one.from);
        index_[number] = flow_.grains.size();
        flow_.grains.push_back(std::move(one));
    }
    // With the last decision that knew as much; one that only killed comes before the next that submitted.
    void kill(std::int32_t number, const GrainHistory &g) {
        if (g.state != GrainState::killed) return;
        std::size_t at = flow_.decisions.size();
        while (at > 0 && flow_.decisions[at - 1].known > g.killed_after) --at;
        if (at == 0 || flow_.decisions[at - 1].known != g.killed_after) insert(at++, g.killed_after);
        Flow::Grains &grains = flow_.grains[index_.at(number)];
        grains.killed_by = std::max(grains.from, static_cast<int>(at) - 1);
    }
    void insert(std::size_t at, std::uint32_t known) {
        flow_.decisions.insert(flow_.decisions.begin() + static_cast<std::ptrdiff_t>(at), {known});
        const auto moved = [&](int &decision) { decision += decision >= static_cast<int>(at); };
        for (Flow::Grains &g : flow_.grains) {
            moved(g.from);
            moved(g.killed_by);
            for (int &shown : g.shown_to) moved(shown);
        }
    }
    void take_results() {
        const std::size_t count = flow_.decisions.size();
        for (const auto &[number, at] : index_) {
            Flow::Grains &grains = flow_.grains[at];
            const std::int32_t result = history_.grains.at(number).result;
            if (result < 0 || static_cast<std::uint32_t>(result) >= history_.handed_out) continue;
            const auto knows = [&](std::uint32_t place, const Flow::Decision &d) { return place < d.known; };
            const auto first = std::upper_bound(flow_.decisions.begin(), flow_.decisions.end(),
                                                static_cast<std::uint32_t>(result), knows);
            grains.to = static_cast<int>(first - flow_.decisions.begin());
            if (grains.to == static_cast<int>(count)) flow_.end = grains.to;
        }
        if (flow_.end >= 0) flow_.decisions.push_back({history_.handed_out});
    }

    const wire::History &history_;
    std::vector<std::pair<std::int64_t, std::int32_t>> order_;
    std::map<std::int32_t, std::size_t> index_;
    Flow flow_;
};

auto likeness(const Flow::Grains &g) {
    return std::make_tuple(g.from, g.to, g.killed_by, static_cast<int>(g.state), g.failed, g.shown_to);
}

std::string quoted(const std::string &text) {
    std::string r = "\"";
    for (const char c : text) {
        if (c == '"' || c == '\\') r += '\\';
        r += c == '\n' ? ' ' : c;
    }
    return r + "\"";
}

// The dataflow graph as a picture: a row for each decision, the grains that it submitted beside it, and from each
// grain a line down to the decision that got its result, in a lane of its own as long as that takes.
constexpr double spine = 110, first_lane = 210, lane_width = 112, box_width = 100, box_height = 24;
constexpr double first_row_y = 92, row_height = 72, in_bus = -40, out_bus = -21;
constexpr int most_rows = 1000;

std::string px(double v) { return std::to_string(static_cast<long long>(v)); }

class Picture {
public:
    explicit Picture(const Flow &flow)
        : flow_(flow), rows_(std::min<int>(most_rows, static_cast<int>(flow.decisions.size()))) {
        for (const Flow::Grains &g : flow.grains)
            if (g.from < rows_) lanes_.push_back(lane_for(g));
    }
    std::string draw(const std::string &title);

private:
    static double row_y(int row) { return first_row_y + row_height * row; }
    double lane_x(std::size_t grains) const { return first_lane + lane_width * lanes_[grains] + box_width / 2; }
    // The leftmost that is free from its row on; lines end above the boxes of the row in which they end.
    int lane_for(const Flow::Grains &g) {
        int last = std::max({g.from + 1, g.to, g.killed_by + 1});
        for (const int shown : g.shown_to) last = std::max(last, shown);
        std::size_t lane = 0;
        while (lane < free_.size() && free_[lane] > g.from) ++lane;
        if (lane == free_.size()) free_.push_back(0);
        free_[lane] = g.to < 0 && g.killed_by < 0 ? std::max(last, g.from + 1) : last;
        return static_cast<int>(lane);
    }
    void draw_decision(int row);
    void draw_lines(const Flow::Grains &g, double x);
    void draw_legend(double y);

    const Flow &flow_;
    const int rows_;
    std::vector<int> lanes_, free_;
    Svg svg_;
};

void Picture::draw_decision(int row) {
    const double y = row_y(row) + out_bus;
    if (row > 0) svg_.line(spine, row_y(row - 1) + out_bus + 9, spine, y - 9, "spine");
    svg_.diamond(spine, y, 9, "#fff3c4");
    const std::uint32_t known = flow_.decisions[static_cast<std::size_t>(row)].known;
    const std::string label = row == flow_.end ? "end" : known == 0 ? "begin" : counted(known, "result");
    svg_.text(spine - 16, y + 4, label, "end");
}

void Picture::draw_lines(const Flow::Grains &g, double x) {
    const double y = row_y(g.from), bottom = y + box_height / 2;
    svg_.path("M" + px(spine + 9) + "," + px(y + out_bus) + "H" + px(x) + "V" + px(y - box_height / 2), "start");
    const auto down_to = [&](int row, double from_x, double bus, const char *kind) {
        if (row >= rows_) return svg_.line(from_x, bottom, from_x, row_y(rows_) + in_bus, kind);
        svg_.path("M" + px(from_x) + "," + px(bottom) + "V" + px(row_y(row) + bus) + "H" + px(spine) + "V" +
                      px(row_y(row) + out_bus - 9),
                  kind);
    };
    if (g.to >= 0) down_to(g.to, x, in_bus, "flow");
    for (const int shown : g.shown_to) down_to(shown, x + 24, in_bus - 5, "shown");
    if (g.killed_by < 0) return;
    const double at = row_y(std::min(g.killed_by, rows_ - 1)) + out_bus;
    if (g.killed_by > g.from) svg_.line(x - 24, bottom, x - 24, at, "kill");
    const double end = g.killed_by > g.from ? at : y + box_height / 2 + 6;
    svg_.path("M" + px(spine + 9) + "," + px(at) + "V" + px(end) + "H" + px(x - 24), "kill");
}

void Picture::draw_legend(double y) {
    svg_.diamond(spine, y, 9, "#fff3c4");
    svg_.text(spine + 16, y + 4, "the control program decides, knowing this many results (all those above)");
    y += 24;
    const struct {
        const char *kind, *text;
    } lines[] = {{"start", "submits a grain"},
                 {"flow", "a grain's result is handed out to this decision"},
                 {"shown", "output of an unfinished grain was read by it"},
                 {"kill", "kills a grain"}};
    for (const auto &line : lines) {
        svg_.path("M" + px(spine - 12) + "," + px(y) + "H" + px(spine + 12), line.kind);
        svg_.text(spine + 20, y + 4, line.text);
        y += 18;
    }
    double x = spine - 12;
    const struct {
        const char *colour, *text;
    } boxes[] = {{"#b9dcb4", "finished"},
                 {"#f2c08a", "failed"},
                 {"#e8b4b0", "killed"},
                 {"#b5d3ee", "running"},
                 {"#eeeeee", "ready"}};
    for (const auto &box : boxes) {
        svg_.box(x, y - 7, 14, 14, box.colour, "", "legend");
        svg_.text(x + 18, y + 4, box.text);
        x += 76;
    }
}

std::string Picture::draw(const std::string &title) {
    svg_.text(20, 26, title, "start", "title");
    svg_.text(20, 44, "From top to bottom: what a decision submits may follow from every result that joined above it.",
              "start", "small");
    for (int row = 0; row < rows_; ++row) draw_decision(row);
    for (std::size_t i = 0; i < lanes_.size(); ++i) draw_lines(flow_.grains[i], lane_x(i));
    for (std::size_t i = 0; i < lanes_.size(); ++i) {
        const double x = lane_x(i), y = row_y(flow_.grains[i].from);
        const Flow::Grains &g = flow_.grains[i];
        const std::string name = name_of(g), count = counted(g.numbers.size(), "grain");
        svg_.box(x - box_width / 2, y - box_height / 2, box_width, box_height, colour_of(g),
                 name + (g.failed ? ", failed" : ""), "box grains");
        svg_.text(x, y + 4, name.size() > 18 ? count : name, "middle");
    }
    double y = row_y(rows_);
    const int more = static_cast<int>(flow_.decisions.size()) - rows_;
    if (more > 0) svg_.text(spine, y, "... and " + counted(more, "further decision") + ": --dot has all of them");
    draw_legend(y + (more > 0 ? 24 : 0));
    const double width = std::max(640.0, first_lane + lane_width * static_cast<double>(free_.size()) + 20);
    return svg_.document(width, y + 150, title);
}

}  // namespace

const char *colour_of(const Flow::Grains &g) {
    if (g.state == GrainState::killed) return "#e8b4b0";
    if (g.failed) return "#f2c08a";
    if (g.state == GrainState::finished) return "#b9dcb4";
    return g.state == GrainState::running ? "#b5d3ee" : "#eeeeee";
}

Flow flow_of(const wire::History &history, std::size_t together) {
    Flow flow = Builder(history).build();
    std::map<decltype(likeness(flow.grains[0])), std::vector<std::size_t>> alike;
    for (std::size_t i = 0; i < flow.grains.size(); ++i) alike[likeness(flow.grains[i])].push_back(i);
    std::vector<Flow::Grains> left;
    for (std::size_t i = 0; i < flow.grains.size(); ++i) {
        const std::vector<std::size_t> &same = alike[likeness(flow.grains[i])];
        if (same.size() <= together) {
            left.push_back(flow.grains[i]);
        } else if (same[0] == i) {
            left.push_back(flow.grains[i]);
            for (std::size_t k = 1; k < same.size(); ++k)
                left.back().numbers.push_back(flow.grains[same[k]].numbers[0]);
        }
    }
    flow.grains = std::move(left);
    return flow;
}

std::string name_of(const Flow::Grains &g) {
    const auto [least, most] = std::minmax_element(g.numbers.begin(), g.numbers.end());
    if (g.numbers.size() == 1) return "grain " + std::to_string(*least);
    const bool row = static_cast<std::size_t>(*most - *least) + 1 == g.numbers.size();
    if (row) return "grains " + std::to_string(*least) + "-" + std::to_string(*most);
    return std::to_string(g.numbers.size()) + " grains of " + std::to_string(*least) + "-" + std::to_string(*most);
}

std::string flow_dot(const Flow &flow, const std::string &title) {
    std::string r = "digraph computation {\n  label=" + quoted(title) + "; labelloc=t; fontname=\"sans-serif\";\n";
    r += "  node [fontname=\"sans-serif\", fontsize=11]; edge [arrowsize=0.7];\n";
    for (std::size_t i = 0; i < flow.decisions.size(); ++i) {
        const bool last = static_cast<int>(i) == flow.end;
        r += "  d" + std::to_string(i) + " [shape=" + (last ? "doublecircle" : "diamond") +
             ", style=filled, fillcolor=\"#fff3c4\", label=" +
             quoted(last     ? "end"
                    : i == 0 ? "begin"
                             : std::to_string(flow.decisions[i].known)) +
             "];\n";
        if (i > 0) r += "  d" + std::to_string(i - 1) + " -> d" + std::to_string(i) + " [style=dotted, weight=8];\n";
    }
    for (const Flow::Grains &g : flow.grains) {
        const std::string node = "g" + std::to_string(g.numbers[0]);
        r += "  " + node + " [shape=box, style=\"rounded,filled\", fillcolor=\"" + colour_of(g) +
             "\", label=" + quoted(name_of(g)) + "];\n";
        r += "  d" + std::to_string(g.from) + " -> " + node + ";\n";
        if (g.to >= 0) r += "  " + node + " -> d" + std::to_string(g.to) + ";\n";
        for (const int shown : g.shown_to)
            r += "  " + node + " -> d" + std::to_string(shown) + " [style=dashed, color=\"#2f6fad\"];\n";
        if (g.killed_by >= 0)
            r += "  d" + std::to_string(g.killed_by) + " -> " + node +
                 " [style=dashed, color=\"#b03028\", constraint=false];\n";
    }
    return r + "}\n";
}

std::string flow_svg(const Flow &flow, const std::string &title) { return Picture(flow).draw(title); }

}  // namespace dcs::commands
