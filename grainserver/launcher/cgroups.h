#pragma once
// Control groups of the kernel, where we may use them: one leaf for each grain, below our own group. What a
// leaf does: it names every process of a grain however it tries to hide, it holds memory and numbers of
// processes down, and it makes the grain yield to the rest of the host. Version 2 and version 1, each
// hierarchy for what it has. Everything here may be missing; then the other means must do.
#include <cstdint>
#include <string>
#include <vector>

#include <sys/types.h>

#include "grainserver/files/grain_record.h"
#include "base/files.h"

namespace dcs::launcher {

// What a leaf watches by itself.
struct Leaf {
    std::vector<Fd> joins;  // writing "0" there moves the writer in; all or the grain does not start
    bool there = false, memory = false, processes = false;
};

class Cgroups {
public:
    // `group`: name of the group for all our leaves. Returns what was found, a sentence for the log. `root` is
    // "" but in tests: there /proc/self/cgroup and /proc/self/mountinfo are read below it.
    std::string open(const std::string &group, const std::string &root = "");

    Leaf make(const std::string &name, const files::Limits &limits) const;
    std::vector<std::string> leaves() const;
    std::vector<pid_t> members(const std::string &name) const;
    // No process of it starts another one from now on; where the kernel can, all are killed at once.
    void seal(const std::string &name) const;
    // Did the kernel kill for memory, or refuse a process?
    bool ran_out_of_memory(const std::string &name) const;
    bool ran_out_of_processes(const std::string &name) const;
    // False while processes are left.
    bool remove(const std::string &name) const;
    // Our own group, when there are no leaves any more.
    void remove_group() const;

private:
    struct Hierarchy {
        std::string path;  // of our group
        bool unified = false, memory = false, pids = false, cpu = false;
        std::string handed_down;  // version 2: the controllers of the leaves
        bool make_group() const;
        void give_way(const std::string &group) const;
    };
    void use(Hierarchy hierarchy, const std::string &own);
    bool set_limits(const Hierarchy &h, const std::string &leaf, const files::Limits &limits, Leaf &made) const;
    std::vector<Hierarchy> hierarchies_;
};

}  // namespace dcs::launcher
