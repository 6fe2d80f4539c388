#include "grainserver/launcher/leftovers.h"

#include <algorithm>

namespace dcs::launcher {

Instant Leftovers::next() const {
    Instant first = Instant::never();
    for (const auto &[uid, not_before] : ended_) first = std::min(first, not_before);
    return first;
}

void Leftovers::clear(const std::set<uid_t> &running, Instant now) {
    const auto due = [&](const auto &entry) { return entry.second <= now; };
    const auto found = std::find_if(ended_.begin(), ended_.end(), due);
    if (found == ended_.end()) return;
    if (running.count(found->first) != 0) {  // its next grain ends some time, and is noted then
        ended_.erase(found);
        return;
    }
    const auto left = remove_(found->first);
    if (left == starter::Leftovers::Left::nothing) ended_.erase(found);
    else if (left == starter::Leftovers::Left::in_use) found->second = now + rest;
}

}  // namespace dcs::launcher
