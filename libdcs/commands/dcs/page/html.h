#pragma once
// The parts that the page's texts are made of. All text of others is escaped here.
#include <cstdint>
#include <string>
#include <string_view>

namespace dcs::commands::page {

std::string words(std::string_view text);    // foreign text, fit for people and for HTML
std::string number(double value);            // of a coordinate: at most one digit behind the point
std::string count(std::int64_t n);           // "1 234 567"
std::string clock_time(std::int64_t at_ms);  // "14:03:07", with the day if it is not today
std::string host_link(const std::string &name);
std::string session_link(const std::string &user, std::int32_t session);
std::string grain_link(const std::string &user, std::int32_t session, std::int32_t grain);
std::string session_path(const std::string &user, std::int32_t session);
// A row of a table; the first cell is its heading.
std::string row(std::initializer_list<std::string> cells, const char *kind = "");
// `label` is for screen readers; `kind`: "", or " stacks" for one whose cells stand below each other on small screens.
std::string table(const char *label, std::initializer_list<const char *> headings, const std::string &rows,
                  const char *kind = "");
// A bar whose parts differ in colour and pattern; `says` describes it to screen readers.
struct Part {
    std::int64_t amount;
    const char *kind;  // done, failed, runs, waits, gone
};
std::string bar(std::initializer_list<Part> parts, const std::string &says);

}  // namespace dcs::commands::page
