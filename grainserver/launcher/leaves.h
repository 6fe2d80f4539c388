#pragma once
// The leaves of running grains, and spare ones: a leaf without processes and without a limit of memory goes to the next
// grain with the same limit of processes and the same devices. To make and to remove one takes the kernel longer than
// to start a process.
#include <set>
#include <string>
#include <vector>

#include "grainserver/starter/starter_client.h"

namespace dcs::launcher {

using starter::Cgroups, starter::Leaf;

class Leaves {
public:
    Leaves(const Cgroups &cgroups, starter::StarterClient &starter) : cgroups_(cgroups), starter_(starter) {}
    // A spare one, or a new one with the name of the grain's directory.
    Leaf take(const std::string &dir, const files::Limits &limits, const starter::Devices &denied = {});
    // The devices that it must not open, as far as its control group can do that.
    starter::Devices denied_to(const files::LaunchRecord &launch, const GivenResources &given) const {
        return starter::denied_to(cgroups_, launch, given);
    }
    // The grain has ended. False: processes are left in it, and it stays as it is.
    bool give_back(Leaf &leaf);
    // Its grain did not start. False: processes are left in it.
    bool remove(Leaf &leaf);
    void remove_spares();
    bool any_spare() const { return !spares_.empty(); }

private:
    const Cgroups &cgroups_;
    starter::StarterClient &starter_;
    std::vector<Leaf> spares_;
    std::set<std::string> names_;  // of all that exist: no two grains ever share a leaf
    unsigned next_ = 1;
};

}  // namespace dcs::launcher
