#pragma once
// The path and the query of a request, taken apart.
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace dcs::commands::page {

struct Target {
    std::vector<std::string> path;             // "/session/ann/7": session, ann, 7
    std::map<std::string, std::string> query;  // "after=7": after, 7
    std::optional<std::int32_t> number_in_path(std::size_t at) const;
    std::string word(const std::string &name) const;  // of the query; empty: not given
    std::int32_t number(const std::string &name, std::int32_t otherwise) const;
};
// Nothing if it holds what no link of the page has.
std::optional<Target> target_of(std::string_view text);

}  // namespace dcs::commands::page
