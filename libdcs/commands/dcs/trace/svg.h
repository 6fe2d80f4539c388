#pragma once
// The few shapes that our pictures are made of. Coordinates are pixels; classes are those of the style at the top.
#include <string>
#include <string_view>

namespace dcs::commands {

class Svg {
public:
    // Text is escaped here; bytes that are not UTF-8 become U+FFFD.
    void line(double x1, double y1, double x2, double y2, const char *kind);
    void path(const std::string &d, const char *kind);
    // `tip`: shown when the pointer rests on it.
    void box(double x, double y, double width, double height, const char *colour, const std::string &tip = "",
             const char *kind = "box");
    void diamond(double x, double y, double half, const char *colour);
    void triangle(double x, double y, double half, const std::string &tip);
    // anchor: start, middle or end.
    void text(double x, double y, std::string_view text, const char *anchor = "start", const char *kind = "text");
    // The whole document. `title` is its name for those who do not see it.
    std::string document(double width, double height, const std::string &title) const;

private:
    std::string body_;
};

}  // namespace dcs::commands
