#include "grainserver/launcher/cgroups.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <set>
#include <sstream>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace dcs::launcher {
namespace {
constexpr std::size_t text_max = 1u << 20;
constexpr const char *daemons_name = "dcs-daemons";  // version 2: where we go, as only leaves may hold processes

std::string read_text(const std::string &path) {
    const files::Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    std::string text;
    char buffer[4096];
    for (ssize_t n = 1; fd && n > 0 && text.size() < text_max;) {
        n = ::read(fd.get(), buffer, sizeof buffer);
        if (n > 0) text.append(buffer, static_cast<std::size_t>(n));
        if (n < 0 && errno == EINTR) n = 1;
    }
    return text;
}
bool write_text(const std::string &path, const std::string &text) {
    const files::Fd fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
    return fd && ::write(fd.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

std::vector<std::string> split(const std::string &text, char at) {
    std::vector<std::string> parts;
    std::string part;
    for (std::istringstream in(text); std::getline(in, part, at);) parts.push_back(part);
    return parts;
}
bool has(const std::vector<std::string> &list, const std::string &word) {
    return std::find(list.begin(), list.end(), word) != list.end();
}
bool make_directory(const std::string &path) { return ::mkdir(path.c_str(), 0755) == 0 || errno == EEXIST; }

// The number behind a word at the start of a line: "max 3" in pids.events.
std::int64_t count_of(const std::string &text, const std::string &word) {
    for (const std::string &line : split(text, '\n'))
        if (line.rfind(word + " ", 0) == 0) {
            std::int64_t n = 0;
            std::from_chars(line.data() + word.size() + 1, line.data() + line.size(), n);
            return n;
        }
    return 0;
}

struct Mount { std::string root, point; std::vector<std::string> options; bool unified = false; };
std::vector<Mount> mounts(const std::string &text) {
    std::vector<Mount> found;
    for (const std::string &line : split(text, '\n')) {
        const std::vector<std::string> words = split(line, ' ');
        const auto dash = std::find(words.begin(), words.end(), "-");
        if (words.size() < 5 || words.end() - dash < 4 || (dash[1] != "cgroup" && dash[1] != "cgroup2")) continue;
        found.push_back({words[3], words[4], split(dash[3], ','), dash[1] == "cgroup2"});
    }
    return found;
}

// Of our own group on that mount; empty if it is not to be seen there.
std::string own_path(const Mount &mount, const std::string &group) {
    if (group.find("..") != std::string::npos) return {};
    if (mount.root == "/") return mount.point + (group == "/" ? "" : group);
    if (group == mount.root) return mount.point;
    return group.rfind(mount.root + "/", 0) == 0 ? mount.point + group.substr(mount.root.size()) : "";
}

std::vector<pid_t> pids_in(const std::string &path) {
    std::vector<pid_t> pids;
    for (const std::string &line : split(read_text(path), '\n')) {
        pid_t pid = 0;
        if (std::from_chars(line.data(), line.data() + line.size(), pid).ec == std::errc{} && pid > 0)
            pids.push_back(pid);
    }
    return pids;
}

// Version 2 gives controllers only to groups whose parent holds no processes. If nobody but we and whoever
// started us is there, we move aside.
bool hand_down(const std::string &own, const std::string &controllers) {
    const std::string control = own + "/cgroup.subtree_control";
    if (write_text(control, controllers)) return true;
    const std::vector<pid_t> there = pids_in(own + "/cgroup.procs");
    for (const pid_t pid : there)
        if (pid != ::getpid() && pid != ::getppid()) return false;
    const std::string aside = own + "/" + daemons_name;
    if (there.empty() || !make_directory(aside)) return false;
    for (const pid_t pid : there)
        if (!write_text(aside + "/cgroup.procs", std::to_string(pid))) return false;
    return write_text(control, controllers);
}
}  // namespace

// Whoever else wants a processor comes first. The kernel weighs a group among its brothers: what its leaves
// have counts only among themselves, so the group itself must give way, too.
void Cgroups::Hierarchy::give_way(const std::string &group) const {
    if (!cpu || write_text(group + "/cpu.idle", "1")) return;
    if (unified) write_text(group + "/cpu.weight", "1");
    else write_text(group + "/cpu.shares", "2");
}

// The keeper of a dead launcher may have removed it meanwhile.
bool Cgroups::Hierarchy::make_group() const {
    if (::mkdir(path.c_str(), 0755) != 0) return errno == EEXIST;
    give_way(path);
    return handed_down.empty() || write_text(path + "/cgroup.subtree_control", handed_down);
}

void Cgroups::use(Hierarchy h, const std::string &own) {
    if (h.unified) {
        const std::vector<std::string> offered = split(read_text(own + "/cgroup.controllers").substr(0, 4096), ' ');
        std::string wanted;
        for (std::string name : offered) {
            while (!name.empty() && name.back() == '\n') name.pop_back();
            if (name == "memory" || name == "pids" || name == "cpu") wanted += (wanted.empty() ? "+" : " +") + name;
        }
        if (!make_directory(h.path)) return;
        if (!wanted.empty() && hand_down(own, wanted) && write_text(h.path + "/cgroup.subtree_control", wanted)) {
            h.handed_down = wanted;
            h.memory = wanted.find("+memory") != std::string::npos;
            h.pids = wanted.find("+pids") != std::string::npos;
            h.cpu = wanted.find("+cpu") != std::string::npos;
        }
    } else if (!make_directory(h.path)) {
        return;
    }
    h.give_way(h.path);
    const std::string probe = h.path + "/probe";  // what we may not make for a grain is of no use
    if (!make_directory(probe)) return;
    const bool joinable = ::access((probe + "/cgroup.procs").c_str(), W_OK) == 0;
    ::rmdir(probe.c_str());
    if (joinable) hierarchies_.push_back(std::move(h));
}

std::string Cgroups::open(const std::string &group, const std::string &root) {
    hierarchies_.clear();
    const std::vector<Mount> all = mounts(read_text(root + "/proc/self/mountinfo"));
    for (const std::string &line : split(read_text(root + "/proc/self/cgroup"), '\n')) {
        const std::size_t first = line.find(':'), second = line.find(':', first + 1);
        if (second == std::string::npos) continue;
        const std::vector<std::string> controllers = split(line.substr(first + 1, second - first - 1), ',');
        const bool unified = controllers.empty() || controllers[0].empty();
        Hierarchy h;
        h.unified = unified;
        h.memory = has(controllers, "memory");
        h.pids = has(controllers, "pids");
        h.cpu = has(controllers, "cpu");
        if (!unified && !h.memory && !h.pids && !h.cpu) continue;
        for (const Mount &mount : all) {
            if (mount.unified != unified) continue;
            if (!unified && !std::all_of(controllers.begin(), controllers.end(),
                                         [&](const std::string &c) { return has(mount.options, c); }))
                continue;
            std::string own = own_path(mount, line.substr(second + 1));
            if (own.empty()) continue;
            own = root + own;
            const std::string aside = std::string("/") + daemons_name;
            if (own.size() > aside.size() && own.compare(own.size() - aside.size(), aside.size(), aside) == 0)
                own.resize(own.size() - aside.size());  // a launcher before us has moved us all
            h.path = own + "/" + group;
            use(h, own);
            break;
        }
    }
    std::string found;
    for (const Hierarchy &h : hierarchies_) {
        found += found.empty() ? "" : ", ";
        found += std::string(h.unified ? "v2" : "v1") + (h.memory ? " memory" : "") + (h.pids ? " pids" : "") +
                 (h.cpu ? " cpu" : "") + (h.unified ? " kill" : "") + " in " + h.path;
    }
    return found.empty() ? "control groups cannot be used; grains are watched by their processes"
                         : "control groups: " + found;
}

bool Cgroups::set_limits(const Hierarchy &h, const std::string &leaf, const files::Limits &limits, Leaf &made) const {
    if (h.memory && limits.memory_mb > 0) {
        const std::string bytes = std::to_string(limits.memory_mb << 20);
        if (h.unified) {
            made.memory = write_text(leaf + "/memory.max", bytes);
            write_text(leaf + "/memory.swap.max", "0");
            write_text(leaf + "/memory.oom.group", "1");
        } else {
            made.memory = write_text(leaf + "/memory.limit_in_bytes", bytes);
            write_text(leaf + "/memory.memsw.limit_in_bytes", bytes);
            write_text(leaf + "/memory.swappiness", "0");
        }
    }
    if (h.pids && limits.processes > 0)
        made.processes = write_text(leaf + "/pids.max", std::to_string(limits.processes));
    h.give_way(leaf);
    made.joins.emplace_back(::open((leaf + "/cgroup.procs").c_str(), O_WRONLY | O_CLOEXEC));
    return static_cast<bool>(made.joins.back());
}

Leaf Cgroups::make(const std::string &name, const files::Limits &limits) const {
    Leaf made;
    for (const Hierarchy &h : hierarchies_) {
        // One only for memory costs the most and names no process that the others do not.
        if (h.memory && !h.unified && !h.pids && !h.cpu && limits.memory_mb == 0) continue;
        const std::string leaf = h.path + "/" + name;
        if (h.make_group() && make_directory(leaf) && set_limits(h, leaf, limits, made)) {
            made.there = true;
            continue;
        }
        remove(name);
        return {};
    }
    return made;
}

std::vector<std::string> Cgroups::leaves() const {
    std::set<std::string> names;
    for (const Hierarchy &h : hierarchies_)
        if (const Result<files::Fd> fd = files::open_directory(AT_FDCWD, h.path))
            if (const Result<std::vector<std::string>> all = files::list(fd->get()))
                for (const std::string &name : *all) {
                    struct stat st{};
                    if (::fstatat(fd->get(), name.c_str(), &st, 0) == 0 && S_ISDIR(st.st_mode)) names.insert(name);
                }
    return {names.begin(), names.end()};
}

std::vector<pid_t> Cgroups::members(const std::string &name) const {
    std::set<pid_t> pids;
    for (const Hierarchy &h : hierarchies_)
        for (const pid_t pid : pids_in(h.path + "/" + name + "/cgroup.procs")) pids.insert(pid);
    return {pids.begin(), pids.end()};
}

void Cgroups::seal(const std::string &name) const {
    for (const Hierarchy &h : hierarchies_) {
        const std::string leaf = h.path + "/" + name;
        if (h.pids) write_text(leaf + "/pids.max", "0");
        if (h.unified) write_text(leaf + "/cgroup.kill", "1");
    }
}

bool Cgroups::ran_out_of_memory(const std::string &name) const {
    for (const Hierarchy &h : hierarchies_) {
        if (!h.memory) continue;
        const std::string leaf = h.path + "/" + name;
        if (count_of(read_text(leaf + (h.unified ? "/memory.events" : "/memory.oom_control")), "oom_kill") > 0)
            return true;
    }
    return false;
}

bool Cgroups::ran_out_of_processes(const std::string &name) const {
    for (const Hierarchy &h : hierarchies_)
        if (h.pids && count_of(read_text(h.path + "/" + name + "/pids.events"), "max") > 0) return true;
    return false;
}

bool Cgroups::remove(const std::string &name) const {
    bool gone = true;
    for (const Hierarchy &h : hierarchies_)
        if (::rmdir((h.path + "/" + name).c_str()) != 0 && errno != ENOENT) gone = false;
    return gone;
}

void Cgroups::remove_group() const {
    for (const Hierarchy &h : hierarchies_) ::rmdir(h.path.c_str());
}

}  // namespace dcs::launcher
