// The time line of the last hour: hosts and their slots from top to bottom, time from left to right.
#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "commands/dcs/frame/table.h"
#include "html.h"
#include "panels.h"

namespace dcs::commands::page {
namespace {

constexpr double name_width = 110, plot_width = 850, lane_height = 14, run_height = 11, axis_height = 22;
constexpr std::size_t hosts_shown = 24, lanes_shown = 16, runs_shown = 1000;
constexpr std::int64_t least_span_ms = 60'000;

struct Shown {  // a run, where it is drawn
    const Run *run = nullptr;
    std::int64_t from_ms = 0, to_ms = 0;
    double y = 0;
};

class Picture {
public:
    Picture(const Snapshot &s, const Journal &journal, std::int64_t now_ms) : now_ms_(now_ms) {
        for (const wire::HostRow &host : s.hosts) slots_[host.name] = host.slots;
        std::vector<const Run *> runs = journal.running();
        for (const Run &run : journal.ended()) runs.push_back(&run);
        from_ms_ = now_ms - least_span_ms;
        for (const Run *run : runs) from_ms_ = std::min(from_ms_, run->from_ms);
        from_ms_ = std::max(from_ms_, now_ms - Journal::window_ms);
        std::sort(runs.begin(), runs.end(), [](const Run *a, const Run *b) {
            return std::tie(a->from_ms, a->session, a->grain) < std::tie(b->from_ms, b->session, b->grain);
        });
        for (const Run *run : runs) {
            const std::int64_t to_ms = run->to_ms < 0 ? std::max(now_ms, run->from_ms) : run->to_ms;
            if (to_ms >= from_ms_) by_host_[run->host].push_back({run, run->from_ms, to_ms, 0});
        }
    }
    std::string draw();

private:
    double x_of(std::int64_t ms) const {
        const double share = static_cast<double>(ms - from_ms_) / static_cast<double>(now_ms_ - from_ms_);
        return name_width + plot_width * std::clamp(share, 0.0, 1.0);
    }
    void draw_host(const std::string &name, std::vector<Shown> &runs);
    void draw_run(const Shown &shown);
    void draw_moves();
    std::string axis(double height) const;

    const std::int64_t now_ms_;
    std::map<std::string, std::int32_t> slots_;
    std::int64_t from_ms_ = 0;
    std::map<std::string, std::vector<Shown>> by_host_;
    std::map<std::tuple<SessionName, std::int32_t>, std::vector<Shown>> drawn_;
    double y_ = axis_height;
    std::size_t count_ = 0, hidden_ = 0;
    std::string body_;
};

void Picture::draw_run(const Shown &s) {
    const Run &run = *s.run;
    const double x = x_of(s.from_ms), width = std::max(1.0, x_of(s.to_ms) - x);
    const std::string box = "y=\"" + number(s.y) + "\" height=\"" + number(run_height) + "\"";
    const std::string end = run.reason.empty() ? "runs" : run.reason;
    const bool left = !run.reason.empty() && run.reason != "finished";
    const std::string tip = to_text(run.session) + ":" + std::to_string(run.grain) + " on " + run.host + ", " +
                            seconds_text(static_cast<double>(s.to_ms - s.from_ms) / 1000) + ": " + end;
    body_ += "<rect x=\"" + number(x) + "\" width=\"" + number(width) + "\" " + box + " class=\"run c" +
             std::to_string(static_cast<unsigned>(run.session.second) % 6) + "\"><title>" + words(tip) +
             "</title></rect>\n";
    double last = -10;
    for (const std::int64_t at : run.checkpoints_ms) {
        const double tick = x_of(at);
        if (tick < last + 4 || at < from_ms_) continue;
        last = tick;
        body_ +=
            "<path class=\"checkpoint\" d=\"M" + number(tick - 2.5) + " " + number(s.y + run_height) + "h5l-2.5-5z\"/>";
    }
    if (!left) return;
    // Done again elsewhere: what was computed since the last checkpoint.
    const double kept = run.checkpoints_ms.empty() ? x : std::max(x, x_of(run.checkpoints_ms.back()));
    if (x + width > kept + 0.5)
        body_ += "<rect x=\"" + number(kept) + "\" width=\"" + number(x + width - kept) + "\" " + box +
                 " fill=\"url(#lost-pattern)\"/>";
    body_ += "<path class=\"left\" d=\"M" + number(x + width) + " " + number(s.y - 1) + "v" + number(run_height + 2) +
             "\"/>";
}

// A lane for each slot. A host gets grains ahead of its slots: such a run is drawn from when a slot was free, or not
// yet. Of runs that are narrower than a point, one stands for those under it.
void Picture::draw_host(const std::string &name, std::vector<Shown> &runs) {
    const auto known = slots_.find(name);
    const std::size_t slots = known == slots_.end() ? lanes_shown : static_cast<std::size_t>(known->second);
    std::vector<std::int64_t> free(std::clamp<std::size_t>(slots, 1, lanes_shown), INT64_MIN);
    std::vector<double> drawn_to(free.size(), -10);
    std::size_t used = 1;
    for (Shown &s : runs) {
        std::size_t lane = 0;  // the first free one, else that which is free soonest
        while (lane < free.size() && free[lane] > s.run->from_ms) ++lane;
        if (lane == free.size())
            lane = static_cast<std::size_t>(std::min_element(free.begin(), free.end()) - free.begin());
        s.from_ms = std::max(s.run->from_ms, free[lane]);
        if (s.run->to_ms < 0 && s.from_ms >= s.to_ms) continue;  // it waits on its host
        s.from_ms = std::min(s.from_ms, s.to_ms);
        free[lane] = std::max(free[lane], s.to_ms);
        used = std::max(used, lane + 1);
        const double end = x_of(s.to_ms);
        const bool under = end < drawn_to[lane] + 1 && (s.run->reason == "finished" || s.run->reason.empty());
        if (under) continue;
        if (++count_ > runs_shown) {
            ++hidden_;
            continue;
        }
        drawn_to[lane] = end;
        s.y = y_ + lane_height * static_cast<double>(lane);
        draw_run(s);
        drawn_[{s.run->session, s.run->grain}].push_back(s);
    }
    const double height = lane_height * static_cast<double>(used);
    const std::string label = name.size() > 16 ? name.substr(0, 15) + ".." : name;
    body_ += "<text x=\"" + number(name_width - 8) + "\" y=\"" + number(y_ + height / 2 + 3) + "\" class=\"name\">" +
             words(label) + "</text>\n";
    y_ += height + 5;
    body_ += "<path class=\"grid\" d=\"M0 " + number(y_ - 3) + "H" + number(name_width + plot_width) + "\"/>\n";
}

void Picture::draw_moves() {
    for (auto &[grain, runs] : drawn_) {
        std::sort(runs.begin(), runs.end(), [](const Shown &a, const Shown &b) { return a.from_ms < b.from_ms; });
        for (std::size_t i = 1; i < runs.size(); ++i) {
            const Shown &from = runs[i - 1], &to = runs[i];
            const std::string tip = to_text(from.run->session) + ":" + std::to_string(from.run->grain) + " left " +
                                    from.run->host + " (" + from.run->reason + ") and continued on " + to.run->host;
            body_ += "<path class=\"move\" marker-end=\"url(#arrow)\" d=\"M" + number(x_of(from.to_ms)) + " " +
                     number(from.y + run_height / 2) + "L" + number(x_of(to.from_ms)) + " " +
                     number(to.y + run_height / 2) + "\"><title>" + words(tip) + "</title></path>\n";
        }
    }
}

std::string Picture::axis(double height) const {
    const double span_s = static_cast<double>(now_ms_ - from_ms_) / 1000;
    double step = 3600;
    for (const double s : {10.0, 30.0, 60.0, 120.0, 300.0, 600.0})
        if (span_s / s <= 8) {
            step = s;
            break;
        }
    std::string r;
    for (double ago = 0; ago <= span_s; ago += step) {
        const double x = x_of(now_ms_ - static_cast<std::int64_t>(ago * 1000));
        r += "<path class=\"grid\" d=\"M" + number(x) + " 16V" + number(height) + "\"/><text x=\"" + number(x) +
             "\" y=\"11\" class=\"" + (ago == 0 ? "name" : "mid") + "\">" +
             (ago == 0    ? "now"
              : step < 60 ? number(ago) + " s ago"
                          : number(ago / 60) + " min ago") +
             "</text>\n";
    }
    return r;
}

std::string Picture::draw() {
    if (by_host_.empty()) return "<p>No grain has run lately.</p>\n";
    std::size_t hosts = 0;
    for (auto &[name, runs] : by_host_)
        if (hosts++ < hosts_shown) draw_host(name, runs);
    draw_moves();
    std::string r =
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"time line\"><svg class=\"time\" "
        "viewBox=\"0 0 970 " +
        number(y_) +
        "\" role=\"img\" aria-label=\"what ran on each host; the table of departures below "
        "says the same in words\">" +
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

}  // namespace

std::string time_panel(const Snapshot &s, const Journal &journal, std::int64_t now_ms) {
    std::string r = Picture(s, journal, now_ms).draw();
    if (journal.incomplete())
        r += "<p class=\"note\">More has happened than is kept: the oldest runs are missing.</p>\n";
    return r;
}

}  // namespace dcs::commands::page
