#include "svg.h"

#include <utility>

#include "base/text.h"
#include "commands/dcs/frame/table.h"

namespace dcs::commands {
namespace {

constexpr const char *style =
    "text{font-family:sans-serif;font-size:11px;fill:#222}.title{font-size:15px;font-weight:bold}.small{fill:#555}"
    ".box{stroke:#555;stroke-width:0.7}.flow{stroke:#4b7f45;stroke-width:1.2;fill:none}"
    ".start{stroke:#777;stroke-width:1;fill:none}.spine{stroke:#b89b3a;stroke-width:2;stroke-dasharray:2 3}"
    ".shown{stroke:#2f6fad;stroke-width:1.2;stroke-dasharray:5 3;fill:none}"
    ".kill{stroke:#b03028;stroke-width:1.5;stroke-dasharray:3 2;fill:none}.dead{stroke:#b03028;stroke-width:2.5}"
    ".moved{stroke:#d07a1a;stroke-width:1.4;stroke-dasharray:4 2;fill:none}.left{stroke:#d07a1a;stroke-width:3}"
    ".grid{stroke:#ddd;stroke-width:1}.axis{stroke:#888;stroke-width:1}.mark{stroke:#b89b3a;stroke-width:1.5}";

std::string n(double value) { return formatted("%.1f", value); }

std::string tip_text(const std::string &tip) {
    return tip.empty() ? "/>\n" : "><title>" + escaped_markup(tip) + "</title>";
}

}  // namespace

void Svg::line(double x1, double y1, double x2, double y2, const char *kind) {
    body_ += "<line x1=\"" + n(x1) + "\" y1=\"" + n(y1) + "\" x2=\"" + n(x2) + "\" y2=\"" + n(y2);
    body_ += std::string("\" class=\"") + kind + "\"/>\n";
}

void Svg::path(const std::string &d, const char *kind) {
    body_ += "<path d=\"" + d + "\" class=\"" + kind + "\" marker-end=\"url(#" + kind + ")\"/>\n";
}

void Svg::box(double x, double y, double width, double height, const char *colour, const std::string &tip,
              const char *kind) {
    body_ += "<rect x=\"" + n(x) + "\" y=\"" + n(y) + "\" width=\"" + n(width) + "\" height=\"" + n(height) +
             "\" rx=\"3\" fill=\"" + colour + "\" class=\"" + kind + "\"" + tip_text(tip);
    if (!tip.empty()) body_ += "</rect>\n";
}

void Svg::diamond(double x, double y, double half, const char *colour) {
    body_ += "<polygon points=\"" + n(x - half) + "," + n(y) + " " + n(x) + "," + n(y - half) + " ";
    body_ += n(x + half) + "," + n(y) + " " + n(x) + "," + n(y + half) + "\" fill=\"";
    body_ += std::string(colour) + "\" class=\"box decision\"/>\n";
}

void Svg::triangle(double x, double y, double half, const std::string &tip) {
    body_ += "<polygon points=\"" + n(x - half) + "," + n(y) + " " + n(x + half) + "," + n(y) + " " + n(x) + "," +
             n(y - 1.6 * half) + "\" fill=\"#333\" class=\"checkpoint\"" + tip_text(tip);
    if (!tip.empty()) body_ += "</polygon>\n";
}

void Svg::text(double x, double y, std::string_view text, const char *anchor, const char *kind) {
    body_ += "<text x=\"" + n(x) + "\" y=\"" + n(y) + "\" text-anchor=\"" + anchor + "\" class=\"" + kind + "\">" +
             escaped_markup(text) + "</text>\n";
}

std::string Svg::document(double width, double height, const std::string &title) const {
    std::string markers;
    const std::pair<const char *, const char *> arrows[] = {
        {"flow", "#4b7f45"}, {"start", "#777"}, {"shown", "#2f6fad"}, {"kill", "#b03028"}, {"moved", "#d07a1a"}};
    for (const auto &[kind, colour] : arrows) {
        markers += std::string("<marker id=\"") + kind + "\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" ";
        markers += "markerWidth=\"7\" markerHeight=\"7\" markerUnits=\"userSpaceOnUse\" orient=\"auto\">";
        markers += "<path d=\"M0,0L8,4L0,8z\" fill=\"";
        markers += std::string(colour) + "\"/></marker>";
    }
    const std::string size = n(width) + "\" height=\"" + n(height);
    const std::string box = n(width) + " " + n(height);
    return "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + size + "\" viewBox=\"0 0 " + box +
           "\" role=\"img\">\n<title>" + escaped_markup(title) + "</title>\n<style>" + style + "</style>\n<defs>" +
           markers + "</defs>\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n" + body_ + "</svg>\n";
}

}  // namespace dcs::commands
