#pragma once
// The ident of a map's session ends in a suffix that says how long its list of inputs is.
#include <cstddef>
#include <optional>
#include <string>

namespace dcs::commands {

// A suffix says how many inputs the list has, and whether maps of its first ones had finished some, which the run left
// out. No list: the ident is one of an earlier release.
struct ListInIdent {
    std::size_t inputs = 0;
    bool goes_on = false;
};
std::string suffix_of_run(const ListInIdent &list, const std::string &random);
std::optional<ListInIdent> list_in(const std::string &ident);

}  // namespace dcs::commands
