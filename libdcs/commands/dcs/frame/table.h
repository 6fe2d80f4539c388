#pragma once
// Text for people: tables, figures, states in colour, and what foreign text is turned into.
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.h"

namespace dcs::commands {

// --color; `automatic`: on a terminal that is not dumb, unless NO_COLOR is set and not empty.
void set_colour(std::string_view when);
// Whether standard output gets colour.
bool has_colour();
// `text` in the colour of the state that `word` begins with; as it is where the state has none.
std::string coloured(std::string_view word, const std::string &text);

// ---- as much of UTF-8 as tables and JSON need

// Columns on a terminal: one per character (wide ones count as one).
std::size_t width_of(std::string_view text);
// At most `columns` characters; a cut is marked by "..".
std::string shortened(std::string_view text, std::size_t columns);

// A command line for people, at most `columns` characters.
std::string label_of(const std::vector<std::string> &words, std::size_t columns);

class Table {
public:
    // A heading that begins with '>' makes its column right-aligned; with '*': its words have colours.
    explicit Table(const std::vector<const char *> &headings);
    Table(std::initializer_list<const char *> headings) : Table(std::vector<const char *>(headings)) {}
    void add(std::vector<std::string> cells);  // as many as headings; made printable
    std::string text() const;                  // headings and rows, no blanks at line ends

private:
    std::vector<std::string> headings_;
    std::vector<bool> right_, states_;
    std::vector<std::vector<std::string>> rows_;
};

std::string seconds_text(double seconds);              // "0.25 s", "12 s", "3 m 20 s", "2 h 5 m"; "-" below zero
std::string whole_seconds_text(std::int64_t seconds);  // of a clock that counts seconds: "0 s", "9 s", "3 m 20 s"
std::string time_text(double unix_s);  // of this zone: "14:03" today, "03 Nov 14:03", "2025-11-03"; "-" for 0
std::string moment_text(const char *format, std::time_t at);  // of this zone, by strftime(3)
std::string bytes_text(std::uint64_t bytes);                  // "512", "4.0 K", "1.5 M"
// "gpu (0x4)", "0x3"; "any" for 0.
std::string class_text(std::uint32_t mask, const std::string &names = "");
std::string grouped_text(std::int64_t n, char between);  // "1 234 567"
std::string some_of(std::vector<std::string> names);     // "local1, local2, local3 and 997 more"
// "1 grain", "3 grains"
std::string counted_text(std::int64_t n, const std::string &noun);
template <std::integral Number> std::string counted(Number n, const std::string &noun) {
    return counted_text(static_cast<std::int64_t>(n), noun);
}

// Foreign text inside HTML and SVG: for an element or an attribute in double quotes. Bytes that are not UTF-8 become
// U+FFFD, control characters blanks.
std::string escaped_markup(std::string_view text);

}  // namespace dcs::commands
