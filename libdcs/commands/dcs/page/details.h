#pragma once
// The pages of single sessions, grains and hosts, and the whole lists.
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "journal.h"
#include "published.h"
#include "snapshot.h"

namespace dcs::commands::page {

// The path and the query of a request, taken apart.
struct Target {
    std::vector<std::string> path;             // "/session/ann/7": session, ann, 7
    std::map<std::string, std::string> query;  // "after=7": after, 7
    std::optional<std::int32_t> number_in_path(std::size_t at) const;
    std::string word(const std::string &name) const;  // of the query; empty: not given
    std::int32_t number(const std::string &name, std::int32_t otherwise) const;
};
// Nothing if it holds what no link of the page has.
std::optional<Target> target_of(std::string_view text);

struct Detail {
    int status = 200;
    Text text;
    const char *type = html_type;
};
// `target`: path and query of the request. Asks the scheduler if the snapshot does not have the answer.
Detail make_detail(const std::string &target, const Snapshot &s, const Journal &journal);
// Whether there is such a kind of page, whatever it will say.
bool is_detail(const std::string &target);

Detail not_found(const std::string &what);

}  // namespace dcs::commands::page
