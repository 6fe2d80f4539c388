#include "markup.h"

#include "base/json.h"
#include "base/text.h"

namespace dcs::commands {

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
