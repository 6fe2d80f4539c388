// The time line of the last hour: hosts and their slots from top to bottom, time from left to right.
// The load panel: throughput and queue depth, as lines.
#include <algorithm>
#include <map>
#include <tuple>

#include "commands/dcs/frame/table.h"
#include "html.h"
#include "lanes.h"
#include "panels.h"
#include "wire/event_log.h"

namespace dcs::commands::page {
namespace {

constexpr double name_width = 110, plot_width = 850, lane_height = 14, run_height = 11, axis_height = 22;
constexpr std::size_t hosts_shown = 24, runs_shown = 1000;
constexpr int marks_shown = 8;

// It left its host before its end, and goes to another.
bool moves(const Run &run) { return !run.reason.empty() && !wire::ends_grain(run.reason); }

class Picture {
public:
    explicit Picture(Lanes lanes) : lanes_(std::move(lanes)) {}
    std::string draw();

private:
    struct Shown {  // a run, where it is drawn
        const Placed *placed;
        double y;
    };
    double x_of(std::int64_t ms) const {
        const double share = static_cast<double>(ms - lanes_.from_ms) / static_cast<double>(lanes_.span_ms());
        return name_width + plot_width * std::clamp(share, 0.0, 1.0);
    }
    void draw_host(const HostRuns &host);
    void draw_run(const Placed &placed, double y);
    void draw_moves();
    std::string axis(double height) const;

    const Lanes lanes_;
    std::map<std::tuple<SessionName, std::int32_t>, std::vector<Shown>> drawn_;
    double y_ = axis_height;
    std::size_t count_ = 0, hidden_ = 0;
    std::string body_;
};

void Picture::draw_run(const Placed &s, double y) {
    const Run &run = s.run;
    const double x = x_of(s.from_ms), width = std::max(1.0, x_of(s.to_ms) - x);
    const std::string box = "y=\"" + number(y) + "\" height=\"" + number(run_height) + "\"";
    const std::string end = run.reason.empty() ? "runs" : run.reason;
    const std::string tip = to_text(run.session) + ":" + std::to_string(run.grain) + " on " + run.host + ", " +
                            seconds_text(static_cast<double>(s.to_ms - s.from_ms) / 1000) + ": " + end;
    body_ += "<rect x=\"" + number(x) + "\" width=\"" + number(width) + "\" " + box + " class=\"run c" +
             std::to_string(static_cast<unsigned>(run.session.second) % 6) + "\"><title>" + words(tip) +
             "</title></rect>\n";
    double last = -10;
    for (const std::int64_t at : run.checkpoints_ms) {
        const double tick = x_of(at);
        if (tick < last + 4 || at < lanes_.from_ms) continue;
        last = tick;
        body_ +=
            "<path class=\"checkpoint\" d=\"M" + number(tick - 2.5) + " " + number(y + run_height) + "h5l-2.5-5z\"/>";
    }
    if (!moves(run)) return;
    // Done again elsewhere: what was computed since the last checkpoint.
    const double kept = run.checkpoints_ms.empty() ? x : std::max(x, x_of(run.checkpoints_ms.back()));
    if (x + width > kept + 0.5)
        body_ += "<rect x=\"" + number(kept) + "\" width=\"" + number(x + width - kept) + "\" " + box +
                 " fill=\"url(#lost-pattern)\"/>";
    body_ +=
        "<path class=\"left\" d=\"M" + number(x + width) + " " + number(y - 1) + "v" + number(run_height + 2) + "\"/>";
}

// Of runs that are narrower than a point, one stands for those under it.
void Picture::draw_host(const HostRuns &host) {
    std::vector<double> drawn_to(host.lanes, -10);
    for (const Placed &placed : host.runs) {
        const double end = x_of(placed.to_ms);
        double &before = drawn_to[placed.lane];
        if (end < before + 1 && (placed.run.reason == "finished" || placed.run.reason.empty())) continue;
        if (++count_ > runs_shown) {
            ++hidden_;
            continue;
        }
        before = end;
        const double y = y_ + lane_height * static_cast<double>(placed.lane);
        draw_run(placed, y);
        drawn_[{placed.run.session, placed.run.grain}].push_back({&placed, y});
    }
    const double height = lane_height * static_cast<double>(host.lanes);
    const std::string label = host.host.size() > 16 ? host.host.substr(0, 15) + ".." : host.host;
    body_ += "<text x=\"" + number(name_width - 8) + "\" y=\"" + number(y_ + height / 2 + 3) + "\" class=\"name\">" +
             words(label) + "</text>\n";
    y_ += height + 5;
    body_ += "<path class=\"grid\" d=\"M0 " + number(y_ - 3) + "H" + number(name_width + plot_width) + "\"/>\n";
}

void Picture::draw_moves() {
    for (auto &[grain, runs] : drawn_) {
        std::sort(runs.begin(), runs.end(),
                  [](const Shown &a, const Shown &b) { return a.placed->from_ms < b.placed->from_ms; });
        for (std::size_t i = 1; i < runs.size(); ++i) {
            const Placed &from = *runs[i - 1].placed, &to = *runs[i].placed;
            if (!moves(from.run)) continue;  // it was run again on request
            const std::string tip = to_text(from.run.session) + ":" + std::to_string(from.run.grain) + " left " +
                                    from.run.host + " (" + from.run.reason + ") and continued on " + to.run.host;
            body_ += "<path class=\"move\" marker-end=\"url(#arrow)\" d=\"M" + number(x_of(from.to_ms)) + " " +
                     number(runs[i - 1].y + run_height / 2) + "L" + number(x_of(to.from_ms)) + " " +
                     number(runs[i].y + run_height / 2) + "\"><title>" + words(tip) + "</title></path>\n";
        }
    }
}

std::string Picture::axis(double height) const {
    std::string r;
    const std::int64_t step_s = axis_step_s(lanes_, marks_shown);
    for (std::int64_t ago_s = 0; ago_s * 1000 <= lanes_.span_ms(); ago_s += step_s) {
        const double x = x_of(lanes_.to_ms - ago_s * 1000);
        r += "<path class=\"grid\" d=\"M" + number(x) + " 16V" + number(height) + "\"/><text x=\"" + number(x) +
             "\" y=\"11\" class=\"" + (ago_s == 0 ? "name" : "mid") + "\">" + ago_text(ago_s) + "</text>\n";
    }
    return r;
}

std::string Picture::draw() {
    if (lanes_.hosts.empty()) return "<p>No grain has run lately.</p>\n";
    const std::size_t hosts = lanes_.hosts.size();
    for (std::size_t i = 0; i < std::min(hosts, hosts_shown); ++i) draw_host(lanes_.hosts[i]);
    draw_moves();
    std::string r =
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"time line\"><svg class=\"time\" "
        "viewBox=\"0 0 970 " +
        number(y_) +
        "\" role=\"img\" aria-label=\"what ran on each host; the table of departures below says the same in words\">" +
        axis(y_) + body_ + "</svg></div>\n";
    r += "<p class=\"legend\"><span class=\"key c1\"></span> a grain runs (colours as of the sessions above) "
         "<span class=\"sign\">&#9650;</span> checkpoint <span class=\"key lost\"></span> work since the last "
         "checkpoint, done again elsewhere <span class=\"sign move\">&#10230;</span> continues on another host</p>\n";
    if (hosts > hosts_shown)
        r += "<p class=\"note\">" + count(static_cast<std::int64_t>(hosts_shown)) + " of " +
             count(static_cast<std::int64_t>(hosts)) + " hosts with work.</p>\n";
    if (hidden_ > 0)
        r += "<p class=\"note\">" + count(static_cast<std::int64_t>(hidden_)) + " more runs are not drawn.</p>\n";
    return r;
}

constexpr double chart_width = 300, chart_height = 70, chart_left = 4, chart_top = 8;

// Breaks where the scheduler did not answer.
template <class Value>
std::string line_of(const Range &range, std::int64_t end_ms, double most, const char *kind, Value value) {
    const double span = static_cast<double>(range.step_ms) * static_cast<double>(Series::points_kept);
    std::string d;
    std::int64_t before = 0;
    for (const Point &p : range.points) {
        const double x = chart_left + chart_width * (1 - static_cast<double>(end_ms - p.at_ms) / span);
        const double y = chart_top + chart_height * (1 - (most > 0 ? static_cast<double>(value(p)) / most : 0));
        const bool gap = before == 0 || p.at_ms - before > 3 * range.step_ms;
        d += (gap ? "M" : "L") + number(x) + " " + number(y);
        before = p.at_ms;
    }
    return d.empty() ? "" : std::string("<path class=\"line ") + kind + "\" d=\"" + d + "\"/>";
}

std::string chart(const std::string &says, const std::string &most, const std::string &begins,
                  const std::string &lines) {
    return "<svg class=\"chart\" viewBox=\"0 0 308 92\" role=\"img\" aria-label=\"" + words(says) + "\">" +
           "<path class=\"axis\" d=\"M4 8V78H304\"/>" + lines + "<text x=\"8\" y=\"16\">" + words(most) +
           "</text><text x=\"4\" y=\"90\">" + words(begins) +
           "</text><text x=\"304\" y=\"90\" class=\"name\">now</text></svg>";
}

std::string range_part(const Range &range, std::int64_t end_ms) {
    double rate = 0;
    std::int64_t queue = 0;
    for (const Point &p : range.points) {
        rate = std::max(rate, p.finished_per_minute);
        queue = std::max({queue, p.ready, p.running});
    }
    const std::string name = range.name, begins = (name == "last hour" ? "an hour" : name.substr(5)) + " ago";
    std::string r = "<figure><figcaption>" + name + "</figcaption>";
    if (range.points.empty())
        return r + "<p class=\"note\">no figures yet: the first after " +
               seconds_text(static_cast<double>(range.step_ms) / 1000) + "</p></figure>\n";
    r +=
        chart("grains ended per minute, " + name + ", at most " + number(rate), "at most " + number(rate) + " a minute",
              begins, line_of(range, end_ms, rate, "ended", [](const Point &p) { return p.finished_per_minute; }));
    r += chart(
        "grains ready and running, " + name + ", at most " + count(queue), "at most " + count(queue), begins,
        line_of(range, end_ms, static_cast<double>(queue), "waiting", [](const Point &p) { return p.ready; }) +
            line_of(range, end_ms, static_cast<double>(queue), "running", [](const Point &p) { return p.running; }));
    return r + "</figure>\n";
}

}  // namespace

std::string time_panel(const Snapshot &s, const Journal &journal, std::int64_t now_ms) {
    std::string r = Picture(lanes_of(s, journal, now_ms)).draw();
    if (journal.incomplete())
        r += "<p class=\"note\">More has happened than is kept: the oldest runs are missing.</p>\n";
    return r;
}

std::string load_panel(const Series &series) {
    std::int64_t end_ms = 0;
    for (const Range &range : series.ranges())
        if (!range.points.empty()) end_ms = std::max(end_ms, range.points.back().at_ms);
    std::string r = "<div class=\"charts\">\n";
    for (const Range &range : series.ranges()) r += range_part(range, end_ms);
    r += "</div>\n<p class=\"legend\">Above: grains that ended per minute. Below: <span class=\"key waiting\"></span> ";
    r += "ready (dashed) and <span class=\"key running\"></span> running. ";
    return r + "Gaps: no page ran, or the scheduler did not answer.</p>\n";
}

}  // namespace dcs::commands::page
