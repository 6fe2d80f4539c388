// The time line of a session: hosts from top to bottom, time from left to right.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <set>

#include "base/text.h"
#include "svg.h"
#include "commands/dcs/frame/table.h"
#include "flow.h"
#include "wire/event_log.h"

namespace dcs::commands {
namespace {

constexpr double left = 130, plot = 960, top = 100, lane_height = 20, bar_height = 15, gap = 10;
constexpr const char *palette[] = {"#b5d3ee", "#b9dcb4", "#f6d9a8", "#d9c3e6",
                                   "#f2bfc4", "#bfe3e0", "#e3dfa9", "#d0d0d0"};

// One stay, where it is drawn.
struct Bar {
    const wire::Stay *stay = nullptr;
    std::int32_t grain = 0;
    std::int64_t to_ms = 0;
    double y = 0;
};

// In the unit that suits a time of `scale` seconds.
std::string seconds_text(double s, double scale) {
    if (scale >= 7200) return formatted("%.4g h", s / 3600);
    return scale >= 300 ? formatted("%.4g min", s / 60) : formatted("%.4g s", s);
}

// At most ten of them, round in seconds, minutes or hours.
double step_for(double seconds) {
    for (const double step : {0.01, 0.02, 0.05,  0.1,   0.2,   0.5,    1.0,    2.0,    5.0,     10.0,
                              30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0, 7200.0, 21600.0, 43200.0})
        if (seconds / step <= 10) return step;
    return 86400 * std::ceil(seconds / 864000);
}

class TimeLine {
public:
    explicit TimeLine(const wire::History &history)
        : history_(history), length_ms_(std::max<std::int64_t>(1, history.to_ms - history.from_ms)) {}
    std::string draw(const std::string &title);

private:
    double x_of(std::int64_t ms) const {
        return left + plot * static_cast<double>(ms - history_.from_ms) / static_cast<double>(length_ms_);
    }
    void gather();
    double draw_host(const std::string &name, std::vector<Bar> &bars, double y);
    void draw_bar(const Bar &bar);
    void draw_moves();
    void draw_control(double y);
    void draw_axis(double bottom);
    void draw_legend(double y);

    const wire::History &history_;
    const std::int64_t length_ms_;
    std::map<std::string, std::vector<Bar>> hosts_;
    std::map<std::int32_t, std::vector<Bar>> moved_;  // stays of grains with several of them, in their order
    Svg svg_;
};

void TimeLine::gather() {
    for (const auto &[number, g] : history_.grains)
        for (const wire::Stay &stay : g.stays)
            hosts_[stay.host].push_back({&stay, number, stay.to_ms < 0 ? history_.to_ms : stay.to_ms, 0});
    for (auto &[name, bars] : hosts_)
        std::sort(bars.begin(), bars.end(), [](const Bar &a, const Bar &b) {
            return std::tie(a.stay->from_ms, a.grain) < std::tie(b.stay->from_ms, b.grain);
        });
}

void TimeLine::draw_bar(const Bar &bar) {
    const wire::Stay &stay = *bar.stay;
    const double lasted = static_cast<double>(bar.to_ms - stay.from_ms) / 1000;
    const double x = x_of(stay.from_ms), width = std::max(1.0, x_of(bar.to_ms) - x);
    const std::string name = "grain " + std::to_string(bar.grain);
    const std::string end = stay.reason.empty() ? "still running" : stay.reason;
    svg_.box(x, bar.y, width, bar_height, palette[bar.grain % 8],
             name + " on " + stay.host + ", incarnation " + std::to_string(stay.incarnation) + ", " +
                 seconds_text(lasted, lasted) + ": " + end,
             "box stay");
    const std::string label = std::to_string(bar.grain);
    if (width > 8.0 * static_cast<double>(label.size()) + 4) svg_.text(x + width / 2, bar.y + 11, label, "middle");
    for (const std::int64_t at : stay.checkpoints_ms)
        svg_.triangle(x_of(at), bar.y + bar_height, 4, name + ": checkpoint");
    if (stay.reason == "killed" || stay.reason == "session_closed")
        svg_.line(x + width, bar.y - 1, x + width, bar.y + bar_height + 1, "dead");
    else if (stay.reason != "finished" && !stay.reason.empty())
        svg_.line(x + width, bar.y - 1, x + width, bar.y + bar_height + 1, "left");
}

// As many lanes as it ran grains at once. Returns where the next host begins.
double TimeLine::draw_host(const std::string &name, std::vector<Bar> &bars, double y) {
    std::vector<std::int64_t> free;  // by lane: from when on
    double drawn_to = -1;            // what is narrower than a pixel hides those under it
    for (Bar &bar : bars) {
        std::size_t lane = 0;
        while (lane < free.size() && free[lane] > bar.stay->from_ms) ++lane;
        if (lane == free.size()) free.push_back(0);
        free[lane] = std::max(bar.to_ms, bar.stay->from_ms + 1);
        bar.y = y + lane_height * static_cast<double>(lane);
        if (history_.grains.at(bar.grain).stays.size() > 1) moved_[bar.grain].push_back(bar);
        const double end = x_of(bar.to_ms);
        if (bars.size() > 2000 && lane == 0 && end < drawn_to + 1) continue;
        if (lane == 0) drawn_to = end;
        draw_bar(bar);
    }
    const double bottom = y + lane_height * static_cast<double>(free.size());
    svg_.text(left - 10, (y + bottom) / 2 + 2, name, "end");
    svg_.line(20, bottom + gap / 2, left + plot, bottom + gap / 2, "grid");
    return bottom + gap;
}

// From where a grain left to where it went on.
void TimeLine::draw_moves() {
    for (auto &[number, bars] : moved_) {
        std::sort(bars.begin(), bars.end(),
                  [](const Bar &a, const Bar &b) { return a.stay->from_ms < b.stay->from_ms; });
        for (std::size_t i = 1; i < bars.size(); ++i) {
            if (wire::ends_grain(bars[i - 1].stay->reason)) continue;  // it was run again on request
            const double x1 = x_of(bars[i - 1].to_ms), x2 = x_of(bars[i].stay->from_ms);
            char d[128];
            std::snprintf(d, sizeof d, "M%.1f,%.1fL%.1f,%.1f", x1, bars[i - 1].y + bar_height / 2, std::max(x1 + 3, x2),
                          bars[i].y + bar_height / 2);
            svg_.path(d, "moved");
        }
    }
}

void TimeLine::draw_control(double y) {
    svg_.text(left - 10, y + 4, "control program", "end");
    svg_.line(left, y, left + plot, y, "grid");
    double last = -10;
    for (const wire::History::Mark &mark : history_.marks) {
        const double x = x_of(mark.at_ms);
        if (mark.kind == wire::EventKind::handed_out) {
            if (x < last + 1.5) continue;  // many in the width of a line
            last = x;
            svg_.line(x, y - 7, x, y + 7, "mark");
            continue;
        }
        const bool again = mark.kind == wire::EventKind::resumed || mark.kind == wire::EventKind::reopened;
        svg_.diamond(x, y, 6, again ? "#f2c08a" : mark.kind == wire::EventKind::closed ? "#888" : "#fff3c4");
    }
    svg_.line(20, y + 16, left + plot, y + 16, "grid");
}

void TimeLine::draw_axis(double bottom) {
    const double seconds = static_cast<double>(length_ms_) / 1000, step = step_for(seconds);
    for (double at = 0; at <= seconds * 1.0001; at += step) {
        const double x = left + plot * at / seconds;
        svg_.line(x, top - 34, x, bottom, "grid");
        svg_.text(x, top - 40, seconds_text(at, seconds), "middle", "small");
    }
    svg_.line(left, bottom, left + plot, bottom, "axis");
}

void TimeLine::draw_legend(double y) {
    double x = left;
    const auto label = [&](const char *text, double width) {
        svg_.text(x + 18, y + 4, text);
        x += width;
    };
    svg_.box(x, y - 7, 14, 13, palette[0], "", "legend");
    label("a grain runs", 92);
    svg_.triangle(x + 6, y + 5, 4, "");
    label("checkpoint", 82);
    svg_.path("M" + std::to_string(static_cast<int>(x)) + "," + std::to_string(static_cast<int>(y)) + "h15", "moved");
    label("and continues elsewhere", 170);
    svg_.line(x + 8, y - 7, x + 8, y + 7, "left");
    label("it leaves", 80);
    svg_.line(x + 8, y - 7, x + 8, y + 7, "dead");
    label("killed", 56);
    svg_.line(x + 8, y - 7, x + 8, y + 7, "mark");
    label("results are delivered", 146);
    svg_.diamond(x + 8, y, 6, "#f2c08a");
    label("control program restarts", 182);
    svg_.diamond(x + 8, y, 6, "#888");
    label("closed", 60);
}

std::string TimeLine::draw(const std::string &title) {
    gather();
    double y = top + 30;
    // The grid lies under the bars: it is drawn first, and as high as they will be.
    TimeLine measure(history_);
    measure.gather();
    for (auto &[name, bars] : measure.hosts_) y = measure.draw_host(name, bars, y);
    svg_.text(20, 26, title, "start", "title");
    std::int64_t stays = 0;
    std::set<std::int32_t> ran;
    for (const auto &[name, bars] : hosts_) {
        stays += static_cast<std::int64_t>(bars.size());
        for (const Bar &bar : bars) ran.insert(bar.grain);
    }
    svg_.text(20, 44,
              counted(history_.grains.size(), "grain") + ", " + std::to_string(ran.size()) + " of them ran, in " +
                  counted(stays, "stay") + " on " + counted(hosts_.size(), "host"),
              "start", "small");
    draw_axis(y);
    draw_control(top);
    double at = top + 30;
    for (auto &[name, bars] : hosts_) at = draw_host(name, bars, at);
    draw_moves();
    draw_legend(at + 24);
    return svg_.document(left + plot + 30, at + 48, title);
}

}  // namespace

std::string time_svg(const wire::History &history, const std::string &title) { return TimeLine(history).draw(title); }

}  // namespace dcs::commands
