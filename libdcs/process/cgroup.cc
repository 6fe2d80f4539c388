#include "process/cgroup.h"

#include <algorithm>
#include <sstream>

#include <fcntl.h>
#include <unistd.h>

#include "base/fd.h"
#include "process/table.h"

namespace dcs {
namespace {

std::vector<std::string> split(const std::string &text, char at) {
    std::vector<std::string> parts;
    std::string part;
    for (std::istringstream in(text); std::getline(in, part, at);) parts.push_back(part);
    return parts;
}

bool contains(const std::vector<std::string> &list, const std::string &word) {
    return std::find(list.begin(), list.end(), word) != list.end();
}

}  // namespace

bool CgroupMount::has(const std::string &option) const { return contains(options, option); }
bool CgroupMembership::has(const std::string &controller) const { return contains(controllers, controller); }

// id parent device root point options... - type source options
std::vector<CgroupMount> cgroup_mounts(const std::string &mountinfo) {
    std::vector<CgroupMount> found;
    for (const std::string &line : split(mountinfo, '\n')) {
        const std::vector<std::string> words = split(line, ' ');
        const auto dash = std::find(words.begin(), words.end(), "-");
        if (words.size() < 5 || words.end() - dash < 4 || (dash[1] != "cgroup" && dash[1] != "cgroup2")) continue;
        found.push_back({words[3], words[4], split(dash[3], ','), dash[1] == "cgroup2"});
    }
    return found;
}

// "4:memory,cpu:/path" or "0::/path"
std::vector<CgroupMembership> cgroup_memberships(const std::string &text) {
    std::vector<CgroupMembership> found;
    for (const std::string &line : split(text, '\n')) {
        const std::size_t first = line.find(':'), second = line.find(':', first + 1);
        if (second == std::string::npos) continue;
        const std::string controllers = line.substr(first + 1, second - first - 1);
        found.push_back({split(controllers, ','), line.substr(second + 1), controllers.empty()});
    }
    return found;
}

bool shows(const CgroupMount &mount, const CgroupMembership &membership) {
    const auto &all = membership.controllers;
    return mount.unified == membership.unified &&
           std::all_of(all.begin(), all.end(), [&](const std::string &controller) { return mount.has(controller); });
}

std::string cgroup_directory(const CgroupMount &mount, const std::string &group) {
    if (group.empty() || group.find("..") != std::string::npos) return {};
    if (mount.root == "/") return mount.point + (group == "/" ? "" : group);
    if (group == mount.root) return mount.point;
    return group.rfind(mount.root + "/", 0) == 0 ? mount.point + group.substr(mount.root.size()) : "";
}

std::vector<pid_t> cgroup_members(const std::string &directory) { return pids_in(directory + "/cgroup.procs"); }

bool write_control(const std::string &path, std::string_view text) {
    const Fd fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
    return fd && ::write(fd.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

}  // namespace dcs
