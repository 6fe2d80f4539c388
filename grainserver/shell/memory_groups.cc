// Memory control groups: "free" inside a container is what the container may still have.
#include <algorithm>
#include <cstdlib>
#include <sstream>

#include "grainserver/shell/host_gauge.h"

namespace dcs::server {
namespace {
// Above this a v1 limit means that there is none.
constexpr std::int64_t no_limit = std::int64_t{1} << 60;

struct Mount { std::string root, point; bool second_version = false; };

// Of /proc/self/mountinfo: id parent device root point options... - type source options
bool memory_mount(const std::string &line, Mount &mount) {
    const std::size_t dash = line.find(" - ");
    if (dash == std::string::npos) return false;
    std::istringstream head(line.substr(0, dash)), tail(line.substr(dash + 3));
    std::string skip, type, source, options;
    head >> skip >> skip >> skip >> mount.root >> mount.point;
    tail >> type >> source >> options;
    mount.second_version = type == "cgroup2";
    return mount.second_version || (type == "cgroup" && ("," + options + ",").find(",memory,") != std::string::npos);
}

// Of /proc/self/cgroup: "4:memory:/path" or "0::/path".
std::string own_group(const std::string &text, bool second_version) {
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
        const std::size_t first = line.find(':'), second = line.find(':', first + 1);
        if (second == std::string::npos) continue;
        const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
        if (second_version ? controllers == ",," : controllers.find(",memory,") != std::string::npos)
            return line.substr(second + 1);
    }
    return "";
}

std::int64_t number_in(const std::string &path) {
    const std::string text = text_of(path);
    if (text.empty() || text[0] < '0' || text[0] > '9') return -1;  // "max"
    return std::strtoll(text.c_str(), nullptr, 10);
}
}  // namespace

std::vector<MemoryGroup> memory_groups(const std::string &root) {
    std::vector<MemoryGroup> found;
    const std::string groups = text_of(root + "/proc/self/cgroup");
    std::istringstream lines(text_of(root + "/proc/self/mountinfo"));
    for (std::string line; std::getline(lines, line);) {
        Mount mount;
        if (!memory_mount(line, mount)) continue;
        std::string path = own_group(groups, mount.second_version);
        // In a container the mount shows the group that it begins with, not the host's root.
        if (mount.root != "/" && path.compare(0, mount.root.size(), mount.root) == 0) path.erase(0, mount.root.size());
        while (!path.empty() && path != "/") {
            found.push_back({root + mount.point + path, path, mount.second_version});
            path.erase(path.rfind('/') == std::string::npos ? 0 : path.rfind('/'));
        }
        // A namespace of control groups shows our own as its root.
        found.push_back({root + mount.point, "/", mount.second_version});
    }
    std::int64_t memory = 0, free = 0;
    const auto without = [&](const MemoryGroup &group) { return !read_group(group, memory, free); };
    found.erase(std::remove_if(found.begin(), found.end(), without), found.end());
    return found;
}

bool read_group(const MemoryGroup &group, std::int64_t &memory_kb, std::int64_t &free_kb) {
    const bool v2 = group.second_version;
    const std::int64_t limit = number_in(group.directory + (v2 ? "/memory.max" : "/memory.limit_in_bytes"));
    if (limit < 0 || limit >= no_limit) return false;
    const std::int64_t used = number_in(group.directory + (v2 ? "/memory.current" : "/memory.usage_in_bytes"));
    if (used < 0) return false;
    const std::string stat = text_of(group.directory + "/memory.stat");
    std::int64_t cached = 0;
    for (const char *name : {"inactive_file", "active_file"})
        cached += std::max<std::int64_t>(number_after(stat, (v2 ? "" : "total_") + std::string(name)), 0);
    memory_kb = limit / 1024;
    free_kb = std::max<std::int64_t>(0, limit - std::max<std::int64_t>(0, used - cached)) / 1024;
    return true;
}

}  // namespace dcs::server
