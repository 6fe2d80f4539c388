#pragma once
// Control groups of the kernel, if they are available: one leaf for each grain, below the launcher's own group. A
// leaf contains every process of a grain, limits memory and the number of processes, and lowers
// the grain's priority against the rest of the host. Versions 1 and 2, each hierarchy with its
// controllers. If any of this is missing, other means are used.
#include <cstdint>
#include <string>
#include <vector>

#include <sys/types.h>

#include "grainserver/files/grain_record.h"
#include "grainserver/starter/device_filter.h"
#include "base/files.h"

namespace dcs::starter {

// A leaf, and the limits that it enforces.
struct Leaf {
    std::string name;          // the directory of the first grain that had it
    std::vector<Fd> joins;     // writing "0" moves the writer into it; if one fails, the grain does not start
    Fd directory;              // of version 2, whose join is the last one: a child can be made in it instead
    Fd refusals;               // how many processes the kernel refused, if it limits them
    std::int64_t refused = 0;  // before the present grain
    std::int64_t processes_max = 0, memory_max_mb = 0;
    bool there = false, memory = false, processes = false;
    bool weighed = false;  // against other groups: the kernel weighs no sessions in it
    Devices denied;        // that its processes cannot open
    bool sealed = false;
};

class Cgroups {
public:
    // `group`: name of the group for all leaves. Returns a sentence about the result, for the log. `root` is
    // "" except in tests: then /proc/self/cgroup and /proc/self/mountinfo are read below it. `low`: other processes
    // of the host have priority over those of the leaves.
    std::string open(const std::string &group, const std::string &root = "", bool low = true);
    void weigh(bool low);  // again, what is there and what is made from now on

    // `denied` are devices that its processes must not open, if denies_devices(). A leaf that lacks one of these
    // properties is not there.
    Leaf make(const std::string &name, const files::Limits &limits, const Devices &denied = {}) const;
    bool denies_devices() const;
    // One that another process has made so, only to look into it.
    Leaf seen(const std::string &name, const files::Limits &limits, const Devices &denied) const;
    bool set_all_limits() const;  // whether the kernel limits memory and processes of leaves
    bool usable() const { return !hierarchies_.empty(); }
    std::vector<std::string> places() const;  // directories that contain the group of all leaves
    // Whether no process is in it. False also if that cannot be read.
    static bool is_empty(const Leaf &leaf);
    static std::int64_t refused_in(const Leaf &leaf);  // processes, since it was made
    std::vector<std::string> leaves() const;
    std::vector<pid_t> members(const std::string &name) const;
    // Keeps its processes from starting others; kills all at once if the kernel can.
    void seal(const std::string &name) const;
    // Whether the kernel killed for lack of memory, or refused a process.
    bool ran_out_of_memory(const std::string &name) const;
    // False while processes are left in it.
    bool remove(const std::string &name) const;
    // Removes the group of all leaves, when there are none left.
    void remove_group() const;

private:
    struct Hierarchy {
        std::string path;  // of the group of all leaves
        bool unified = false, memory = false, pids = false, cpu = false, devices = false, low = true;
        std::string handed_down;  // version 2: the controllers of the leaves
        bool serves(const files::Limits &limits, const Devices &denied) const;
        bool make_group() const;
        // Its list of processes, by which they join. A process with one thread may use either of version 1: at
        // `cgroup.procs` the kernel first stops all forks and execs of the host, which takes it 10 to 20 ms.
        const char *members() const { return unified ? "/cgroup.procs" : "/tasks"; }
        void weigh(const std::string &group) const;
        bool only(bool Hierarchy::*controller) const;  // of version 1, with no other one that is of use here
    };
    void use(Hierarchy hierarchy, const std::string &own);
    bool set_limits(const Hierarchy &h, const std::string &leaf, const files::Limits &limits, Leaf &made) const;
    std::vector<Hierarchy> hierarchies_;
};

// The devices that a grain must not open, as far as its control group can do that.
Devices denied_to(const Cgroups &cgroups, const files::LaunchRecord &launch, const GivenResources &given);

}  // namespace dcs::starter
