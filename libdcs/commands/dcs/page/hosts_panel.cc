// The pool map: the hosts of each class, with their slots where there are few, else a square for each.
#include <algorithm>
#include <map>

#include "commands/dcs/frame/table.h"
#include "html.h"
#include "panels.h"

namespace dcs::commands::page {
namespace {

constexpr std::size_t cards_shown = 48, troubled_shown = 12, squares_in_row = 64;
constexpr std::int32_t boxes_shown = 24;  // of one host

// Busy slots are filled, free ones empty; of more than a line of them only the share.
std::string slots_picture(const wire::HostRow &row) {
    const std::string says = std::to_string(busy_slots(row)) + " of " + std::to_string(row.slots) + " slots busy";
    if (row.slots > boxes_shown || row.slots <= 0)
        return bar({{row.running, "runs"}, {std::max(0, row.slots - row.running), "waits"}}, says);
    std::string r = "<svg class=\"slots\" width=\"" + std::to_string(row.slots * 13) +
                    "\" height=\"12\" role=\"img\" aria-label=\"" + says + "\">";
    for (int i = 0; i < row.slots; ++i)
        r += "<rect x=\"" + number(i * 13 + 0.5) + "\" y=\"0.5\" width=\"10\" height=\"10\" class=\"" +
             (i < row.running ? "busy" : "free") + "\"/>";
    return r + "</svg>";
}

std::string call_in_text(const wire::HostRow &row) {
    return row.last_call_in_s < 0 ? "has not called in" : "called in " + seconds_text(row.last_call_in_s) + " ago";
}

std::string busy_text(const wire::HostRow &row) {
    const std::string text = std::to_string(busy_slots(row)) + "/" + std::to_string(row.slots) + " busy";
    return row.running > row.slots ? text + " and " + std::to_string(row.running - row.slots) + " more" : text;
}

std::string card(const wire::HostRow &row) {
    const std::string word = host_word(row);
    std::string r = "<li class=\"host " + word + "\">" + host_link(row.name) + " <b>" + word + "</b> " +
                    slots_picture(row) + "<span>" + busy_text(row) + ", " + call_in_text(row) + "</span>";
    if (!row.note.empty()) r += "<span class=\"note\">" + words(row.note) + "</span>";
    return r + "</li>\n";
}

// A thousand hosts as a few paths.
std::string squares(const std::vector<const wire::HostRow *> &rows) {
    std::map<std::string, std::string> paths;
    for (std::size_t i = 0; i < rows.size(); ++i) {
        std::string kind = host_word(*rows[i]);
        if (kind == "active")
            kind = rows[i]->running == 0 ? "idle" : rows[i]->running < rows[i]->slots ? "part" : "full";
        paths[kind] += "M" + std::to_string(i % squares_in_row * 12) + " " + std::to_string(i / squares_in_row * 12) +
                       "h10v10h-10z";
    }
    const std::size_t lines = (rows.size() + squares_in_row - 1) / squares_in_row;
    std::string r = "<svg class=\"squares\" viewBox=\"-1 -1 770 " + std::to_string(lines * 12 + 1) +
                    "\" role=\"img\" aria-label=\"a square for each host, in the order of their names\">";
    for (const auto &[kind, d] : paths) {
        r += "<path class=\"" + kind + "\" d=\"" + d + "\"/>";
        const char *pattern = kind == "part" ? "runs" : kind == "late" ? "late" : kind == "dead" ? "failed" : nullptr;
        if (pattern) r += std::string("<path fill=\"url(#") + pattern + "-pattern)\" d=\"" + d + "\"/>";
    }
    r += "</svg>\n<p class=\"legend\"><span class=\"key full\"></span> all slots busy ";
    r += "<span class=\"key part\"></span> some <span class=\"key idle\"></span> none ";
    r += "<span class=\"key drained\"></span> drained <span class=\"key late\"></span> late ";
    r += "<span class=\"key no_job\"></span> no job ";
    return r + "<span class=\"key dead\"></span> dead or unknown</p>\n";
}

std::string class_part(const std::string &name, const std::vector<const wire::HostRow *> &rows) {
    std::int64_t slots = 0, busy = 0, active = 0, troubled = 0, expected = 0;
    for (const wire::HostRow *row : rows) {
        const bool up = row->state == "active";
        active += up;
        expected += row->state != "no_job";
        if (up) slots += row->slots, busy += busy_slots(*row);
        troubled += is_troubled(*row);
    }
    std::string r = "<h3>" + words(name) + "</h3>\n<p>" + count(active) + " of " + words(counted(expected, "host")) +
                    " active, " + count(busy) + " of " + words(counted(slots, "slot")) + " busy</p>\n";
    const bool few = rows.size() <= cards_shown;
    if (!few) r += squares(rows);
    if (!few && troubled > 0) r += "<p>" + words(counted(troubled, "host")) + " to look at:</p>\n";
    r += "<ul class=\"hosts\">\n";
    std::size_t shown = 0;
    for (const wire::HostRow *row : rows)
        if (few || (is_troubled(*row) && shown++ < troubled_shown)) r += card(*row);
    r += "</ul>\n";
    if (!few && static_cast<std::size_t>(troubled) > troubled_shown)
        r += "<p><a href=\"/hosts?state=trouble\">All hosts to look at</a></p>\n";
    return r;
}

}  // namespace

std::string host_word(const wire::HostRow &row) {
    if (row.state == "delinquent") return "late";
    if (row.state == "active" && row.drained) return "drained";
    return row.state == "active" || row.state == "dead" || row.state == "no_job" ? row.state : "unknown";
}

bool is_troubled(const wire::HostRow &row) {
    const std::string word = host_word(row);
    return (word != "active" && word != "no_job") || !row.note.empty();
}

std::string hosts_panel(const Snapshot &s) {
    if (s.hosts.empty()) return "<p>The host table has no hosts.</p>\n";
    std::map<std::pair<std::uint32_t, std::string>, std::vector<const wire::HostRow *>> classes;
    for (const wire::HostRow &row : s.hosts) classes[{row.host_class, row.class_names}].push_back(&row);
    std::string r;
    for (const auto &[key, rows] : classes) r += class_part("Class " + class_text(key.first, key.second), rows);
    return r + "<p><a href=\"/hosts\">All hosts as a table</a></p>\n";
}

}  // namespace dcs::commands::page
