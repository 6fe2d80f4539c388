#pragma once
// Control groups of the kernel, version 1 and 2: where a process is, where that is to be seen, and who else is there.
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

namespace dcs {

// A hierarchy as /proc/self/mountinfo shows it. `root`: the group that the mount shows as its top; another one than
// "/" in a container.
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

// Does this mount show that hierarchy?
bool shows(const CgroupMount &mount, const CgroupMembership &membership);
// The directory of a group on the mount; empty if it is not to be seen there.
std::string cgroup_directory(const CgroupMount &mount, const std::string &group);
// Processes of a group, of its version 1 or 2.
std::vector<pid_t> cgroup_members(const std::string &directory);
// Into a control file, which takes all at once or nothing.
bool write_control(const std::string &path, std::string_view text);

}  // namespace dcs
