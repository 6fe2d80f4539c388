#pragma once
// Foreign text on one line that no terminal misreads.
#include <string>
#include <string_view>

namespace dcs {

// Printable ASCII and well-formed UTF-8 pass. Backslash, control characters, bytes that are no UTF-8 and
// characters that turn the direction of writing become \\, \n, \t, \r or \xHH. Cut after 8 KiB, marked "...".
std::string escape_text(std::string_view text);

}  // namespace dcs
