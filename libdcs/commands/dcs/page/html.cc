#include "html.h"

#include <ctime>

#include "base/text.h"
#include "commands/dcs/frame/table.h"

namespace dcs::commands::page {
namespace {

constexpr double bar_width = 160, bar_height = 12;

std::string link(const std::string &path, const std::string &text) {
    return "<a href=\"" + escaped_markup(path) + "\">" + words(text) + "</a>";
}

std::string path_word(const std::string &name) { return percent_encoded(name, "-._"); }

}  // namespace

std::string words(std::string_view text) { return escaped_markup(printable(text)); }

std::string number(double value) {
    const std::string text = formatted("%.1f", value);
    return text.ends_with(".0") ? text.substr(0, text.size() - 2) : text;
}

std::string count(std::int64_t n) { return grouped_text(n, ' '); }

std::string clock_time(std::int64_t at_ms) {
    const std::time_t at = static_cast<std::time_t>(at_ms / 1000);
    const bool today = moment_text("%F", at) == moment_text("%F", std::time(nullptr));
    return moment_text(today ? "%H:%M:%S" : "%Y-%m-%d %H:%M:%S", at);
}

std::string host_link(const std::string &name) { return link("/host/" + path_word(name), name); }

std::string session_path(const std::string &user, std::int32_t session) {
    return "/session/" + path_word(user) + "/" + std::to_string(session);
}

std::string session_link(const std::string &user, std::int32_t session) {
    return link(session_path(user, session), user + "/" + std::to_string(session));
}

std::string grain_link(const std::string &user, std::int32_t session, std::int32_t grain) {
    return link("/grain" + session_path(user, session).substr(8) + "/" + std::to_string(grain),
                user + "/" + std::to_string(session) + ":" + std::to_string(grain));
}

std::string row(std::initializer_list<std::string> cells, const char *kind) {
    std::string r = *kind ? std::string("<tr class=\"") + kind + "\">" : "<tr>";
    bool first = true;
    for (const std::string &cell : cells) {
        r += first ? "<th scope=\"row\">" + cell + "</th>" : "<td>" + cell + "</td>";
        first = false;
    }
    return r + "</tr>\n";
}

std::string table(const char *label, std::initializer_list<const char *> headings, const std::string &rows,
                  const char *kind) {
    std::string r = std::string("<div class=\"scroll") + kind + "\" tabindex=\"0\" role=\"region\" aria-label=\"" +
                    label + "\"><table><thead><tr>";
    for (const char *heading : headings) r += std::string("<th scope=\"col\">") + heading + "</th>";
    return r + "</tr></thead>\n<tbody>\n" + rows + "</tbody></table></div>\n";
}

std::string bar(std::initializer_list<Part> parts, const std::string &says) {
    std::int64_t all = 0;
    for (const Part &part : parts) all += part.amount;
    std::string r = "<svg class=\"bar\" width=\"160\" height=\"12\" role=\"img\" aria-label=\"" + words(says) + "\">";
    double x = 0;
    for (const Part &part : parts) {
        if (part.amount <= 0 || all <= 0) continue;
        const double width = bar_width * static_cast<double>(part.amount) / static_cast<double>(all);
        const std::string place =
            "x=\"" + number(x) + "\" width=\"" + number(width) + "\" height=\"" + number(bar_height) + "\"";
        r += "<rect " + place + " class=\"" + part.kind + "\"/>";
        // A pattern over the colour, for those who do not tell the colours apart.
        const std::string kind = part.kind;
        if (kind == "failed" || kind == "runs") r += "<rect " + place + " fill=\"url(#" + kind + "-pattern)\"/>";
        x += width;
    }
    return r + "</svg>";
}

}  // namespace dcs::commands::page
