#include "table.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <unistd.h>

#include "base/require.h"
#include "base/text.h"
#include "base/json.h"

namespace dcs::commands {
namespace {

enum class When { automatic, always, never } when = When::automatic;

struct Colour {
    const char *words, *code;
};
constexpr Colour colours[] = {{"|running|active|up|ok|", "32"},
                              {"|ready|starting|delinquent|unknown|", "33"},
                              {"|failed|killed|dead|down|damaged|", "31"}};

std::string set_in_environment(const char *name) {
    const char *value = std::getenv(name);
    return value == nullptr ? "" : value;
}

}  // namespace

void set_colour(std::string_view word) {
    when = word == "always" ? When::always : word == "never" ? When::never : When::automatic;
}

bool has_colour() {
    if (when != When::automatic) return when == When::always;
    const std::string terminal = set_in_environment("TERM");
    return set_in_environment("NO_COLOR").empty() && !terminal.empty() && terminal != "dumb" &&
           ::isatty(STDOUT_FILENO) == 1;
}

std::string coloured(std::string_view word, const std::string &text) {
    const std::string key = "|" + std::string(word.substr(0, word.find_first_of(", "))) + "|";
    for (const Colour &colour : colours)
        if (std::string_view(colour.words).find(key) != std::string_view::npos)
            return "\033[" + std::string(colour.code) + "m" + text + "\033[0m";
    return text;
}

std::size_t width_of(std::string_view text) {
    std::size_t columns = 0;
    while (!text.empty()) {
        const std::size_t length = utf8_character(text);
        text.remove_prefix(length == 0 ? 1 : length);
        ++columns;
    }
    return columns;
}

std::string shortened(std::string_view text, std::size_t columns) {
    if (width_of(text) <= columns) return std::string(text);
    std::string out;
    for (std::size_t taken = 0; taken + 2 < columns; ++taken) {
        const std::size_t length = utf8_character(text);
        out += text.substr(0, length == 0 ? 1 : length);
        text.remove_prefix(length == 0 ? 1 : length);
    }
    return out + "..";
}

std::string label_of(const std::vector<std::string> &words, std::size_t columns) {
    std::string text;
    for (std::size_t i = 0; i < words.size() && text.size() < 4 * columns; ++i) text += (i > 0 ? " " : "") + words[i];
    return shortened(printable(text), columns);
}

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
    const bool this_year = moment_text("%Y", then) == moment_text("%Y", now);
    const bool this_day = moment_text("%F", then) == moment_text("%F", now);
    const std::string text = moment_text(this_day ? "%H:%M" : this_year ? "%d %b %H:%M" : "%Y-%m-%d", then);
    return text.empty() ? "-" : text;
}

std::string moment_text(const char *format, std::time_t at) {
    std::tm parts = {};
    char text[64] = "";
    if (::localtime_r(&at, &parts) != nullptr) (void)std::strftime(text, sizeof text, format, &parts);
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

std::string grouped_text(std::int64_t n, char between) {
    std::string text = std::to_string(n);
    for (std::size_t at = text.size(); at > 3 && text[at - 4] != '-';) text.insert(at -= 3, 1, between);
    return text;
}

std::string counted_text(std::int64_t n, const std::string &noun) {
    return std::to_string(n) + " " + noun + (n == 1 ? "" : "s");
}

std::string some_of(std::vector<std::string> names) {
    const std::size_t more = names.size() > 12 ? names.size() - 6 : 0;
    names.resize(names.size() - more);
    return joined(names) + (more > 0 ? " and " + std::to_string(more) + " more" : "");
}

std::string escaped_markup(std::string_view text) {
    const std::string quoted = valid_utf8(text) ? std::string() : json_string(text);  // valid UTF-8 in any case
    const std::string_view clean = quoted.empty() ? text : std::string_view(quoted).substr(1, quoted.size() - 2);
    std::string r;
    r.reserve(clean.size());
    for (const char c : clean) {
        if (c == '&') r += "&amp;";
        else if (c == '<') r += "&lt;";
        else if (c == '>') r += "&gt;";
        else if (c == '"') r += "&quot;";
        else r += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    }
    return r;
}

}  // namespace dcs::commands
