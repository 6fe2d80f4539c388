#include "locks/leaf.h"

#include <charconv>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <dirent.h>
#include <fcntl.h>
#include <string_view>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "locks/process_stat.h"

namespace dcs::locks {
namespace {

constexpr long cgroup2_magic = 0x63677270;
constexpr std::size_t text_max = 1u << 20;
constexpr std::time_t stale_s = 60;  // younger ones may be waiting for their first process
constexpr char prefix[] = "dcs-lock-";

bool write_text(const std::string &path, std::string_view text) {
    const int fd = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
    if (fd < 0) return false;
    const bool done = ::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
    ::close(fd);
    return done;
}

std::vector<std::string_view> split(std::string_view text, char at) {
    std::vector<std::string_view> parts;
    while (!text.empty()) {
        const std::size_t end = text.find(at);
        parts.push_back(text.substr(0, end));
        text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    }
    return parts;
}

// "0::/user.slice/..." of /proc/self/cgroup
std::string own_group() {
    const std::string text = small_text("/proc/self/cgroup", text_max);
    for (const std::string_view line : split(text, '\n'))
        if (line.starts_with("0::/")) return std::string(line.substr(3));
    return {};
}

// Where our own group is to be seen; empty: nowhere.
std::string own_directory() {
    const std::string group = own_group();
    if (group.empty() || group.find("..") != std::string::npos) return {};
    const std::string text = small_text("/proc/self/mountinfo", text_max);
    for (const std::string_view line : split(text, '\n')) {
        if (line.find(" - cgroup2 ") == std::string_view::npos) continue;
        const std::vector<std::string_view> words = split(line, ' ');
        if (words.size() < 5) continue;
        const std::string root(words[3]), point(words[4]);
        if (root == "/") return point + (group == "/" ? "" : group);
        if (group == root) return point;
        if (group.starts_with(root + "/")) return point + group.substr(root.size());
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
            ::rmdir(path.c_str());  // the kernel refuses while somebody is in it
    }
    ::closedir(dir);
}

}  // namespace

std::string leaf_name(std::uint64_t cookie) {
    char name[sizeof prefix + 16];
    std::snprintf(name, sizeof name, "%s%016llx", prefix, static_cast<unsigned long long>(cookie));
    return name;
}

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
    std::vector<pid_t> pids;
    if (path.empty()) return pids;
    const std::string text = small_text(path + "/cgroup.procs", text_max);
    for (const std::string_view line : split(text, '\n')) {
        pid_t pid = 0;
        if (std::from_chars(line.data(), line.data() + line.size(), pid).ec == std::errc{} && pid > 0)
            pids.push_back(pid);
    }
    return pids;
}

void thaw_leaf(const std::string &path) {
    if (!path.empty()) write_text(path + "/cgroup.freeze", "0");
}

void kill_leaf(const std::string &path) {
    if (!path.empty()) write_text(path + "/cgroup.kill", "1");
}

void remove_leaf(const std::string &path) {
    if (path.empty()) return;
    for (int tries = 0; tries < 16 && ::rmdir(path.c_str()) != 0; ++tries)  // they may fork while they move
        for (const pid_t pid : leaf_members(path))
            write_text(path.substr(0, path.rfind('/')) + "/cgroup.procs", std::to_string(pid));
}

}  // namespace dcs::locks
