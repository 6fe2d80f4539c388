#include "series.h"

#include <algorithm>
#include <initializer_list>
#include <iterator>

#include "base/text.h"
#include "commands/dcs/frame/table.h"

namespace dcs::commands::page {
namespace {

bool read_numbers(const std::vector<std::string_view> &words, std::array<std::int64_t, 6> &numbers) {
    if (words.size() < 2 || words.size() > numbers.size() + 1) return false;
    for (std::size_t i = 1; i < words.size(); ++i)
        if (!read_number(words[i], numbers[i - 1])) return false;
    return true;
}

// After a kill of the scheduler a host's counts may be those of a moment before.
template <class Number> Number grown(Number last, Number now) { return now > last ? now - last : 0; }

}  // namespace

// Rates in thousandths: "point RANGE AT RATE READY RUNNING", "base RANGE AT ENDED".
std::string Series::text() const {
    std::string r;
    const auto line = [&](const char *word, std::initializer_list<std::int64_t> numbers) {
        r += word;
        for (const std::int64_t n : numbers) r += " " + std::to_string(n);
        r += "\n";
    };
    for (std::size_t i = 0; i < ranges_.size(); ++i) {
        const auto range = static_cast<std::int64_t>(i);
        line("base", {range, bases_[i].at_ms, bases_[i].ended});
        for (const Point &p : ranges_[i].points)
            line("point",
                 {range, p.at_ms, static_cast<std::int64_t>(p.finished_per_minute * 1000), p.ready, p.running});
    }
    return r;
}

void Series::restore(std::string_view text, std::int64_t now_ms) {
    while (!text.empty()) {
        const std::vector<std::string_view> words = words_of(take_line(text));
        std::array<std::int64_t, 6> n = {};
        if (!read_numbers(words, n) || n[0] < 0 || n[0] >= std::ssize(ranges_) || n[1] <= 0 || n[1] > now_ms) continue;
        const auto i = static_cast<std::size_t>(n[0]);
        std::deque<Point> &points = ranges_[i].points;
        if (words[0] == "base" && words.size() == 4) {
            bases_[i] = {n[1], n[2]};
        } else if (words[0] == "point" && words.size() == 6 && points.size() <= points_kept && n[2] >= 0 && n[3] >= 0 &&
                   n[4] >= 0 && (points.empty() || points.back().at_ms < n[1])) {
            points.push_back({n[1], static_cast<double>(n[2]) / 1000, n[3], n[4]});
        }
    }
}

bool Series::take(std::int64_t at_ms, std::int64_t ended, std::int64_t ready, std::int64_t running) {
    bool news = false;
    for (std::size_t i = 0; i < ranges_.size(); ++i) {
        Range &range = ranges_[i];
        Base &base = bases_[i];
        const bool first = base.at_ms == 0 || at_ms < base.at_ms;  // or the clock was set back
        const std::int64_t passed_ms = at_ms - base.at_ms;
        if (!first && passed_ms < range.step_ms) continue;
        // A host that left the table takes its total with it.
        const double minutes = static_cast<double>(passed_ms) / 60'000;
        const double rate = first ? 0 : static_cast<double>(std::max<std::int64_t>(0, ended - base.ended)) / minutes;
        if (!first) range.points.push_back({at_ms, rate, ready, running});
        news = true;
        base = {at_ms, ended};
        const std::int64_t oldest = at_ms - range.step_ms * static_cast<std::int64_t>(points_kept);
        while (!range.points.empty() && range.points.front().at_ms < oldest) range.points.pop_front();
    }
    return news;
}

void HostCounters::take(const std::vector<wire::HostRow> &hosts) {
    std::map<std::string, Host> next;
    for (const wire::HostRow &row : hosts) {
        const Host now = {row.launched, row.finished, row.failed, row.given_back, row.cpu_s};
        const auto known = last_.find(row.name);
        const Host before = known != last_.end() ? known->second : now;
        starts_[class_text(row.host_class, row.class_names)] += grown(before.launched, now.launched);
        finished_ += grown(before.finished, now.finished);
        failed_ += grown(before.failed, now.failed);
        given_back_ += grown(before.given_back, now.given_back);
        cpu_s_ += grown(before.cpu_s, now.cpu_s);
        next[row.name] = now;
    }
    last_ = std::move(next);
}

}  // namespace dcs::commands::page
