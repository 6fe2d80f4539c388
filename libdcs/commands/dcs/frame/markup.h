#pragma once
// Foreign text inside HTML and SVG.
#include <string>
#include <string_view>

namespace dcs::commands {

// For an element or an attribute in double quotes. Bytes that are not UTF-8 become U+FFFD, control characters blanks.
std::string escaped_markup(std::string_view text);

}  // namespace dcs::commands
