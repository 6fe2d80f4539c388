#include "list_in_ident.h"

#include <charconv>

namespace dcs::commands {

constexpr std::size_t suffix_most = 10;

std::string suffix_of_run(const ListInIdent &list, const std::string &random) {
    char digits[16];
    char *end = std::to_chars(digits, digits + sizeof digits, list.inputs, 36).ptr;
    return ((list.goes_on ? "m" : "w") + std::string(digits, end) + "_" + random).substr(0, suffix_most);
}

std::optional<ListInIdent> list_in(const std::string &ident) {
    const std::size_t at = ident.rfind('-') + 1, end = ident.find('_', at);
    if (end == std::string::npos || (ident[at] != 'm' && ident[at] != 'w')) return std::nullopt;
    ListInIdent list{0, ident[at] == 'm'};
    const char *last = ident.data() + end;
    const bool whole = std::from_chars(ident.data() + at + 1, last, list.inputs, 36).ptr == last && list.inputs > 0;
    return whole ? std::optional(list) : std::nullopt;
}

}  // namespace dcs::commands
