#include "table.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ctime>

#include "base/require.h"
#include "colour.h"
#include "unicode.h"

namespace dcs::commands {

Table::Table(const std::vector<const char *> &headings) {
    for (const char *heading : headings) {
        right_.push_back(heading[0] == '>');
        states_.push_back(heading[0] == '*');
        headings_.push_back(right_.back() || states_.back() ? heading + 1 : heading);
    }
}

void Table::add(std::vector<std::string> cells) {
    DCS_REQUIRE(cells.size() == headings_.size(), "a table row has one cell per heading");
    for (std::string &cell : cells) cell = printable(cell);
    rows_.push_back(std::move(cells));
}

std::string Table::text() const {
    std::vector<std::size_t> widths;
    for (std::size_t i = 0; i < headings_.size(); ++i) {
        std::size_t width = width_of(headings_[i]);
        for (const auto &row : rows_) width = std::max(width, width_of(row[i]));
        widths.push_back(width);
    }
    std::string out;
    const bool colour = has_colour();
    auto line = [&](const std::vector<std::string> &cells, bool heading) {
        std::string text;
        for (std::size_t i = 0; i < cells.size(); ++i) {
            const std::string blanks(widths[i] - width_of(cells[i]), ' ');
            if (i > 0) text += "  ";
            const bool state = colour && states_[i] && !heading;
            const std::string cell = state ? coloured(cells[i], cells[i]) : cells[i];
            text += right_[i] ? blanks + cell : cell + blanks;
        }
        text.erase(text.find_last_not_of(' ') + 1);
        out += text + "\n";
    };
    line(headings_, true);
    for (const auto &row : rows_) line(row, false);
    return out;
}

std::string seconds_text(double seconds) {
    if (!(seconds >= 0)) return "-";
    char text[64];
    if (seconds < 10) {
        std::snprintf(text, sizeof text, "%.2f s", seconds);
        return text;
    }
    const long long whole = std::llround(std::min(seconds, 9e15));
    if (whole < 60) std::snprintf(text, sizeof text, "%lld s", whole);
    else if (whole < 3600) std::snprintf(text, sizeof text, "%lld m %lld s", whole / 60, whole % 60);
    else if (whole < 86400) std::snprintf(text, sizeof text, "%lld h %lld m", whole / 3600, whole / 60 % 60);
    else std::snprintf(text, sizeof text, "%lld d %lld h", whole / 86400, whole / 3600 % 24);
    return text;
}

std::string whole_seconds_text(std::int64_t seconds) {
    return seconds >= 0 && seconds < 10 ? std::to_string(seconds) + " s" : seconds_text(static_cast<double>(seconds));
}

std::string time_text(double unix_s) {
    if (!(unix_s > 0)) return "-";
    const std::time_t then = static_cast<std::time_t>(unix_s), now = std::time(nullptr);
    std::tm at = {}, today = {};
    if (::localtime_r(&then, &at) == nullptr || ::localtime_r(&now, &today) == nullptr) return "-";
    const bool this_year = at.tm_year == today.tm_year, this_day = this_year && at.tm_yday == today.tm_yday;
    char text[40];
    std::strftime(text, sizeof text, this_day ? "%H:%M" : this_year ? "%d %b %H:%M" : "%Y-%m-%d", &at);
    return text;
}

std::string bytes_text(std::uint64_t bytes) {
    if (bytes < 1024) return std::to_string(bytes);
    static const char units[] = "KMGTPE";
    double value = static_cast<double>(bytes) / 1024;
    int unit = 0;
    while (value >= 1023.95 && unit < 5) {
        value /= 1024;
        ++unit;
    }
    char text[32];
    std::snprintf(text, sizeof text, "%.1f %c", value, units[unit]);
    return text;
}

std::string class_text(std::uint32_t mask, const std::string &names) {
    if (mask == 0) return "any";
    char text[16];
    std::snprintf(text, sizeof text, "0x%x", mask);
    return names.empty() ? text : names + " (" + text + ")";
}

std::string counted(std::int64_t n, const std::string &noun) {
    return std::to_string(n) + " " + noun + (n == 1 ? "" : "s");
}

std::string joined(const std::vector<std::string> &parts) {
    std::string text;
    for (const std::string &part : parts) text += (text.empty() ? "" : ", ") + part;
    return text;
}

}  // namespace dcs::commands
