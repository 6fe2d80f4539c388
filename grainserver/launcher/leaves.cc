#include "grainserver/launcher/leaves.h"

#include "base/planted.h"
#include "base/require.h"

namespace dcs::launcher {
namespace {
constexpr std::size_t spares_max = 256;
}  // namespace

Leaf Leaves::take(const std::string &dir, const files::Limits &limits, const starter::Devices &denied) {
    for (std::size_t i = spares_.size(); i-- > 0 && limits.memory_mb == 0;) {
        if (spares_[i].processes_max != limits.processes) continue;
        if (spares_[i].denied != denied && !planted("launcher.leaf_of_other_devices")) continue;
        Leaf leaf = std::move(spares_[i]);
        spares_.erase(spares_.begin() + static_cast<std::ptrdiff_t>(i));
        leaf.refused = planted("launcher.old_refusals") ? 0 : Cgroups::refused_in(leaf);
        if (Cgroups::is_empty(leaf)) return leaf;
        remove(leaf);  // the host's administrator has put a process into it
    }
    std::string name = dir;
    while (names_.count(name) != 0) name = dir + "+" + std::to_string(next_++);
    Leaf leaf = starter_.make_leaf(cgroups_, name, limits, denied);
    if (leaf.there) names_.insert(name);
    return leaf;
}

bool Leaves::give_back(Leaf &leaf) {
    DCS_REQUIRE(leaf.there, "the grain has a leaf");
    const bool again = leaf.memory_max_mb == 0 && !leaf.sealed && spares_.size() < spares_max;
    if (!again) return remove(leaf);
    if (!Cgroups::is_empty(leaf) && !planted("launcher.leaf_with_processes")) return false;
    spares_.push_back(std::move(leaf));
    leaf = Leaf();
    return true;
}

bool Leaves::remove(Leaf &leaf) {
    if (!leaf.there) return true;
    leaf.joins.clear();
    if (!starter_.remove_leaf(leaf.name)) return false;
    names_.erase(leaf.name);
    leaf = Leaf();
    return true;
}

void Leaves::remove_spares() {
    for (Leaf &leaf : spares_) remove(leaf);
    spares_.clear();
}

}  // namespace dcs::launcher
