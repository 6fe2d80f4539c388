// The dataflow graph as a picture: a row for each decision, the grains that it submitted beside it, and from each
// grain a line down to the decision that got its result, in a lane of its own as long as that takes.
#include <algorithm>

#include "svg.h"
#include "commands/dcs/frame/table.h"
#include "flow.h"

namespace dcs::commands {
namespace {

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
        const std::string name = name_of(g), count = counted(static_cast<std::int64_t>(g.numbers.size()), "grain");
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

std::string flow_svg(const Flow &flow, const std::string &title) { return Picture(flow).draw(title); }

}  // namespace dcs::commands
