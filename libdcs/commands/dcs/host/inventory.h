#pragma once
// Hosts out of files that other programs have of them: an Ansible inventory, GNU parallel's list of ssh logins.
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"

namespace dcs::commands {

std::string_view trimmed(std::string_view text);  // without blanks at its ends

struct ListedHost {
    std::string name;
    std::vector<std::pair<std::string, std::string>> settings;  // of the host table: "slots", "8"
    std::string origin;                                         // "FILE:LINE", or "FILE"
};

// In INI, or the JSON of `ansible-inventory --list`, which a `{` tells. Variables dcs_KEY are the setting KEY; nearer
// groups go before farther ones, a host before its groups. `group`: only its hosts; empty: all. An error is
// "FILE:LINE: what".
Result<std::vector<ListedHost>> hosts_of_inventory(std::string_view text, const std::string &file,
                                                   const std::string &group);
// Lines "[@GROUPS/][N/][SSH...] [USER@]HOST", N are its slots; `:` is `own_name`.
Result<std::vector<ListedHost>> hosts_of_logins(std::string_view text, const std::string &file,
                                                const std::string &own_name);

// One host of the table: what becomes of its line.
struct TableChange {
    enum class What { same, fresh, changed };
    What what = What::same;
    std::string name, before, after;
};
// The host table with these hosts in it. A host that is there keeps its line but for the settings that are listed; no
// other line is touched.
std::string merged_table(std::string_view table, const std::vector<ListedHost> &hosts,
                         std::vector<TableChange> &changes);

}  // namespace dcs::commands
