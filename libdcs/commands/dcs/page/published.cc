#include "published.h"

#include "base/json.h"
#include "base/text.h"
#include "html.h"

namespace dcs::commands::page {
namespace {

// Patterns for those who do not tell the colours apart; used by the pictures of all panels.
constexpr const char *patterns =
    R"(<svg width="0" height="0" class="patterns" aria-hidden="true"><defs>
<pattern id="failed-pattern" width="4" height="4" patternUnits="userSpaceOnUse">
<path class="ink" d="M0 0L4 4M4 0L0 4"/></pattern>
<pattern id="runs-pattern" width="5" height="5" patternUnits="userSpaceOnUse">
<path class="ink" d="M-1 1L1-1M0 5L5 0M4 6L6 4"/></pattern>
<pattern id="late-pattern" width="4" height="4" patternUnits="userSpaceOnUse"><path class="ink" d="M0 2H4"/></pattern>
<pattern id="lost-pattern" width="4" height="4" patternUnits="userSpaceOnUse">
<path class="ink strong" d="M-1 1L1-1M0 4L4 0M3 5L5 3"/></pattern>
<marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7"
markerUnits="userSpaceOnUse" orient="auto"><path class="tip" d="M0 0L8 4L0 8z"/></marker>
</defs></svg>
)";

std::string panel_html(const Panel &panel) {
    const std::string id = panel.id;
    return "<section aria-labelledby=\"h-" + id + "\"><h2 id=\"h-" + id + "\">" + panel.heading + "</h2>\n<div id=\"" +
           id + "\">\n" + panel.html + "</div></section>\n";
}

}  // namespace

Text Published::update_since(const std::string &last_id) const {
    std::uint64_t last = 0;
    const std::size_t dash = last_id.rfind('-');
    const bool ours = dash != std::string::npos && last_id.compare(0, dash, run) == 0;
    if (!ours || !read_number(std::string_view(last_id).substr(dash + 1), last) || last > number) last = 0;
    if (last == number) return nullptr;
    if (last != 0 && last + 1 == number && update) return update;
    JsonObject changed;
    for (const Panel &panel : panels)
        if (panel.changed > last) changed.add(panel.id, panel.html);
    return text_of("id: " + id() + "\nevent: panels\ndata: " + changed.text() + "\n\n");
}

std::string document(const std::string &title, const std::string &body, const std::string &live) {
    std::string r =
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
        "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
        "<meta name=\"color-scheme\" content=\"light dark\">\n<title>" +
        words(title) +
        "</title>\n<link rel=\"stylesheet\" href=\"/page.css\">\n"
        "<link rel=\"icon\" href=\"/icon.svg\" type=\"image/svg+xml\">\n";
    if (!live.empty()) r += "<noscript><meta http-equiv=\"refresh\" content=\"10\"></noscript>\n";
    r += "<script src=\"/page.js\" defer></script>\n</head>\n<body" +
         (live.empty() ? std::string() : " data-live=\"" + live + "\"") +
         ">\n<a class=\"skip\" href=\"#main\">To the content</a>\n<header><h1>" + words(title) +
         "</h1>\n<nav aria-label=\"pages\"><a href=\"/\">Pool</a> <a href=\"/sessions\">Sessions</a> "
         "<a href=\"/hosts\">Hosts</a> <a href=\"/metrics\">Metrics</a></nav>";
    if (!live.empty()) r += "<p id=\"live\" role=\"status\">as of loading</p>";
    return r + "</header>\n" + patterns + "<main id=\"main\">\n" + body + "</main>\n</body>\n</html>\n";
}

std::string first_page_of(const Published &p) {
    std::string body;
    for (const Panel &panel : p.panels) body += panel_html(panel);
    return document("DCS pool", body, p.id());
}

}  // namespace dcs::commands::page
