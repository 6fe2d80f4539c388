#include "store/pending.h"

#include "store/names.h"

namespace dcs::store {

bool Pending::removed_above(const std::string &directory) const {
    for (std::string d = directory; !d.empty(); d = parent_of(d))
        if (removed.count(d)) return true;
    return false;
}

bool Pending::touched_below(const std::string &directory) const {
    if (touched.count(directory)) return true;
    const auto next = touched.lower_bound(directory + "/");
    return next != touched.end() && is_below(*next, directory);
}

void Pending::forget_below(const std::string &directory) {
    erase_below(files, directory);
    erase_below(directories, directory);
    erase_below(fresh, directory);
    erase_below(lengths, directory);
}

}  // namespace dcs::store
