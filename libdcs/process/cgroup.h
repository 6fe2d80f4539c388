#pragma once
// Control groups of the kernel, versions 1 and 2: the group of a process, its directory, and its members.
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

namespace dcs {

// A hierarchy from /proc/self/mountinfo. `root`: the group at the top of the mount; not "/" in a container.
struct CgroupMount {
    std::string root, point;
    std::vector<std::string> options;  // version 1: its controllers among others
    bool unified = false;              // version 2
    bool has(const std::string &option) const;
};
std::vector<CgroupMount> cgroup_mounts(const std::string &mountinfo);

// A line of /proc/PID/cgroup.
struct CgroupMembership {
    std::vector<std::string> controllers;  // version 1
    std::string path;
    bool unified = false;
    bool has(const std::string &controller) const;
};
std::vector<CgroupMembership> cgroup_memberships(const std::string &text);

// Whether this mount shows that hierarchy.
bool shows(const CgroupMount &mount, const CgroupMembership &membership);
// The directory of a group on the mount; empty if the mount does not show it.
std::string cgroup_directory(const CgroupMount &mount, const std::string &group);
// The processes of a group of version 1 or 2.
std::vector<pid_t> cgroup_members(const std::string &directory);
// Writes a control file in one write. False on failure.
bool write_control(const std::string &path, std::string_view text);

}  // namespace dcs
