// Throughput and queue depth, as lines.
#include <algorithm>

#include "commands/dcs/frame/table.h"
#include "html.h"
#include "panels.h"

namespace dcs::commands::page {
namespace {

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
