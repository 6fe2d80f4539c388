#include "locks/leaf.h"

#include <cstring>
#include <ctime>
#include <dirent.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/hex.h"
#include "base/require.h"
#include "process/cgroup.h"
#include "process/table.h"

namespace dcs::locks {
namespace {

constexpr long cgroup2_magic = 0x63677270;
constexpr std::size_t text_max = 1u << 20;
constexpr std::time_t stale_s = 60;  // a younger leaf may still be waiting for its first process
constexpr char prefix[] = "dcs-lock-";

// The directory of the caller's own group; empty if it is not visible.
std::string own_directory() {
    const std::vector<CgroupMount> mounts = cgroup_mounts(kernel_text("/proc/self/mountinfo", text_max));
    for (const CgroupMembership &own : cgroup_memberships(kernel_text("/proc/self/cgroup", text_max)))
        for (const CgroupMount &mount : mounts) {
            if (!own.unified || !mount.unified) continue;
            if (std::string directory = cgroup_directory(mount, own.path); !directory.empty()) return directory;
        }
    return {};
}

void remove_stale(const std::string &directory) {
    DIR *dir = ::opendir(directory.c_str());
    if (dir == nullptr) return;
    while (const dirent *entry = ::readdir(dir)) {
        if (std::strncmp(entry->d_name, prefix, sizeof prefix - 1) != 0) continue;
        const std::string path = directory + "/" + entry->d_name;
        struct stat st = {};
        if (::stat(path.c_str(), &st) == 0 && st.st_mtime + stale_s < ::time(nullptr))
            ::rmdir(path.c_str());  // the kernel refuses while the group has members
    }
    ::closedir(dir);
}

}  // namespace

std::string leaf_name(std::uint64_t cookie) { return prefix + hex_of_number(cookie); }

std::string make_leaf(std::uint64_t cookie) {
    const std::string directory = own_directory();
    if (directory.empty() || cookie == 0) return {};
    const std::string path = directory + "/" + leaf_name(cookie);
    if (::mkdir(path.c_str(), 0755) != 0) return {};
    remove_stale(directory);
    if (::access((path + "/cgroup.procs").c_str(), W_OK) == 0) return path;
    ::rmdir(path.c_str());
    return {};
}

bool is_leaf(const std::string &path, std::uint64_t cookie) {
    if (path.empty() || cookie == 0 || path.front() != '/' || path.find("..") != std::string::npos) return false;
    if (!path.ends_with("/" + leaf_name(cookie))) return false;
    struct statfs fs = {};
    return ::statfs(path.c_str(), &fs) == 0 && fs.f_type == cgroup2_magic;
}

std::vector<pid_t> leaf_members(const std::string &path) {
    return path.empty() ? std::vector<pid_t>() : cgroup_members(path);
}

namespace {
void require_leaf(const std::string &path) {
    DCS_REQUIRE(path.find(std::string("/") + prefix) != std::string::npos, "the path is that of a leaf");
}
}  // namespace

void thaw_leaf(const std::string &path) {
    if (path.empty()) return;
    require_leaf(path);
    write_control(path + "/cgroup.freeze", "0");
}

void kill_leaf(const std::string &path) {
    if (path.empty()) return;
    require_leaf(path);
    write_control(path + "/cgroup.kill", "1");
}

void remove_leaf(const std::string &path) {
    if (path.empty()) return;
    require_leaf(path);
    for (int tries = 0; tries < 16 && ::rmdir(path.c_str()) != 0; ++tries)  // members may fork during the move
        for (const pid_t pid : leaf_members(path))
            write_control(path.substr(0, path.rfind('/')) + "/cgroup.procs", std::to_string(pid));
}

}  // namespace dcs::locks
