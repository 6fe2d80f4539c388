#include "store/pending.h"

#include "store/names.h"

namespace dcs::store {
namespace {

// The names below a directory sort behind "directory/" and before "directory0" ('0' follows '/').
template <class Ordered> void erase_below(Ordered &names, const std::string &directory) {
    names.erase(directory);
    names.erase(names.lower_bound(directory + "/"), names.lower_bound(directory + "0"));
}

}  // namespace

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
