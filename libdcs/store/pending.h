#pragma once
// What has been applied but not synced since the last flush, and which further turns require a flush before
// they are applied.
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace dcs::store {

// Erases a directory's name and those below it: they sort after "directory/" and before "directory0"
// ('0' follows '/').
template <class Ordered> void erase_below(Ordered &names, const std::string &directory) {
    if (const auto itself = names.find(directory); itself != names.end()) names.erase(itself);
    names.erase(names.lower_bound(directory + "/"), names.lower_bound(directory + "0"));
}

struct Pending {
    std::uint64_t bytes = 0;                       // of turn roots and big temporaries
    std::map<std::uint64_t, std::uint64_t> roots;  // bytes of each turn's
    std::vector<std::string> temporaries;          // big ones of committed turns
    std::set<std::string> files;                   // content to sync
    std::set<std::string> directories;             // names to sync
    std::set<std::string> fresh;                   // new directories: not durable in their parents
    std::set<std::string> touched;                 // directories of updated trees
    std::set<std::string> removed;                 // directories of removed trees
    std::set<std::string> big;                     // nodes whose content came from a big temporary
    std::map<std::string, std::uint64_t> lengths;  // of files that were appended to

    // Replay would repeat the removal and so remove what was put into the directory before the turn's root.
    bool removed_above(const std::string &directory) const;
    // Replay would look for files that the removal has removed.
    bool touched_below(const std::string &directory) const;
    // The directory is removed, so nothing in it has to be synced.
    void forget_below(const std::string &directory);
};

}  // namespace dcs::store
