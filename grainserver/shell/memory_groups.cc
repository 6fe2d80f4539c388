// Memory control groups: inside a container, free memory is what the container may still use.
#include <algorithm>
#include <cstdlib>

#include "grainserver/shell/host_gauge.h"
#include "base/require.h"
#include "process/cgroup.h"

namespace dcs::server {
namespace {
// A v1 limit above this value means no limit.
constexpr std::int64_t no_limit = std::int64_t{1} << 60;

std::int64_t number_in(const std::string &path) {
    const std::string text = text_of(path);
    if (text.empty() || text[0] < '0' || text[0] > '9') return -1;  // "max"
    return std::strtoll(text.c_str(), nullptr, 10);
}
}  // namespace

std::vector<MemoryGroup> memory_groups(const std::string &root) {
    std::vector<MemoryGroup> found;
    const auto groups = cgroup_memberships(text_of(root + "/proc/self/cgroup"));
    for (const CgroupMount &mount : cgroup_mounts(text_of(root + "/proc/self/mountinfo"))) {
        if (!mount.unified && !mount.has("memory")) continue;
        const auto own = std::find_if(groups.begin(), groups.end(), [&](const CgroupMembership &group) {
            return group.unified == mount.unified && (group.unified || group.has("memory"));
        });
        const std::string directory = own != groups.end() ? cgroup_directory(mount, own->path) : "";
        DCS_REQUIRE(directory.empty() || directory.rfind(mount.point, 0) == 0, "a group lies below its mount");
        if (!directory.empty())
            for (std::string path = directory.substr(mount.point.size()); path.size() > 1;) {
                found.push_back({root + mount.point + path, path, mount.unified});
                path.erase(path.rfind('/'));
            }
        // In a cgroup namespace the server's own group is the root.
        found.push_back({root + mount.point, "/", mount.unified});
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
