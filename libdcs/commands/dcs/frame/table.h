#pragma once
// Aligned tables and figures for people.
#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

namespace dcs::commands {

class Table {
public:
    // A heading that begins with '>' makes its column right-aligned; with '*': its words have colours (colour.h).
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
std::string time_text(double unix_s);         // of this zone: "14:03" today, "03 Nov 14:03", "2025-11-03"; "-" for 0
std::string bytes_text(std::uint64_t bytes);  // "512", "4.0 K", "1.5 M"
// "gpu (0x4)", "0x3"; "any" for 0.
std::string class_text(std::uint32_t mask, const std::string &names = "");
std::string joined(const std::vector<std::string> &parts);  // "a, b, c"
// "1 grain", "3 grains"
std::string counted(std::int64_t n, const std::string &noun);

}  // namespace dcs::commands
