#include "grainserver/starter/cgroups.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <set>
#include <sstream>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/require.h"
#include "process/cgroup.h"
#include "process/table.h"

namespace dcs::starter {
namespace {
constexpr std::size_t text_max = 1u << 20;
constexpr Device no_device;                          // by which is tried whether devices can be denied
constexpr const char *daemons_name = "dcs-daemons";  // version 2: the daemons' own leaf

std::string read_text(const std::string &path) { return kernel_text(path, text_max); }
bool is_leaf_name(const std::string &name) {
    return !name.empty() && name[0] != '.' && name.find('/') == std::string::npos;
}
bool make_group_directory(const std::string &path) { return ::mkdir(path.c_str(), 0755) == 0 || errno == EEXIST; }

// The number after a word at the start of a line: "max 3" in pids.events.
std::int64_t count_of(const std::string &text, const std::string &word) {
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);)
        if (line.rfind(word + " ", 0) == 0) {
            std::int64_t n = 0;
            std::from_chars(line.data() + word.size() + 1, line.data() + line.size(), n);
            return n;
        }
    return 0;
}

// Version 2 gives controllers only to groups whose parent contains no processes. If the launcher and the
// processes that started it are alone there, they move to a group of their own.
bool hand_down(const std::string &own, const std::string &controllers) {
    const std::string control = own + "/cgroup.subtree_control";
    if (write_control(control, controllers)) return true;
    const std::vector<pid_t> there = cgroup_members(own);
    for (const pid_t pid : there)
        if (pid != ::getpid() && pid != ::getppid()) return false;
    const std::string aside = own + "/" + daemons_name;
    if (there.empty() || !make_group_directory(aside)) return false;
    for (const pid_t pid : there)
        if (!write_control(aside + "/cgroup.procs", std::to_string(pid))) return false;
    return write_control(control, controllers);
}
}  // namespace

// The kernel weighs a group against its siblings, and its leaves only among themselves, so the group itself must have
// low weight, too, where other processes of the host have priority.
void Cgroups::Hierarchy::weigh(const std::string &group) const {
    if (!cpu || write_control(group + "/cpu.idle", low ? "1" : "0")) return;
    if (unified) write_control(group + "/cpu.weight", low ? "1" : "100");
    else write_control(group + "/cpu.shares", low ? "2" : "1024");
}

void Cgroups::weigh(bool low) {
    for (Hierarchy &h : hierarchies_) {
        if (h.low == low) continue;
        h.low = low;
        h.weigh(h.path);
        for (const std::string &leaf : leaves()) h.weigh(h.path + "/" + leaf);
    }
}

bool Cgroups::Hierarchy::only(bool Hierarchy::*controller) const {
    const int count = memory + pids + cpu + devices;
    return !unified && count == 1 && this->*controller;
}

// A hierarchy for memory alone is expensive and lists no processes that the others do not.
bool Cgroups::Hierarchy::serves(const files::Limits &limits, const Devices &denied) const {
    return !(only(&Hierarchy::memory) && limits.memory_mb == 0) && !(only(&Hierarchy::devices) && denied.empty());
}

// The keeper of a dead launcher may have removed the group.
bool Cgroups::Hierarchy::make_group() const {
    if (::mkdir(path.c_str(), 0755) != 0) return errno == EEXIST;
    weigh(path);
    return handed_down.empty() || write_control(path + "/cgroup.subtree_control", handed_down);
}

void Cgroups::use(Hierarchy h, const std::string &own) {
    if (h.unified) {
        std::istringstream offered(read_text(own + "/cgroup.controllers"));
        std::string wanted;
        for (std::string name; offered >> name;)
            if (name == "memory" || name == "pids" || name == "cpu") wanted += (wanted.empty() ? "+" : " +") + name;
        if (!make_group_directory(h.path)) return;
        if (!wanted.empty() && hand_down(own, wanted) && write_control(h.path + "/cgroup.subtree_control", wanted)) {
            h.handed_down = wanted;
            h.memory = wanted.find("+memory") != std::string::npos;
            h.pids = wanted.find("+pids") != std::string::npos;
            h.cpu = wanted.find("+cpu") != std::string::npos;
        }
    } else if (!make_group_directory(h.path)) {
        return;
    }
    h.weigh(h.path);
    const std::string probe = h.path + "/probe";  // a hierarchy in which no group can be made is not used
    if (!make_group_directory(probe)) return;
    const bool joinable = ::access((probe + h.members()).c_str(), W_OK) == 0;
    const bool useless = h.only(&Hierarchy::devices);
    h.devices = h.devices && !denies_devices() && deny_devices(probe, h.unified, {no_device});
    ::rmdir(probe.c_str());
    if (joinable && (h.devices || !useless)) hierarchies_.push_back(std::move(h));
    else if (useless) ::rmdir(h.path.c_str());
}

std::string Cgroups::open(const std::string &group, const std::string &root, bool low) {
    hierarchies_.clear();
    const std::vector<CgroupMount> all = cgroup_mounts(read_text(root + "/proc/self/mountinfo"));
    for (const CgroupMembership &member : cgroup_memberships(read_text(root + "/proc/self/cgroup"))) {
        Hierarchy h;
        h.unified = member.unified;
        h.low = low;
        h.memory = member.has("memory");
        h.pids = member.has("pids");
        h.cpu = member.has("cpu");
        h.devices = member.unified || member.has("devices");
        if (!h.unified && !h.memory && !h.pids && !h.cpu && !h.devices) continue;
        for (const CgroupMount &mount : all) {
            std::string own = shows(mount, member) ? cgroup_directory(mount, member.path) : "";
            if (own.empty()) continue;
            own = root + own;
            const std::string aside = std::string("/") + daemons_name;
            if (own.size() > aside.size() && own.compare(own.size() - aside.size(), aside.size(), aside) == 0)
                own.resize(own.size() - aside.size());  // an earlier launcher has moved these processes
            h.path = own + "/" + group;
            use(h, own);
            break;
        }
    }
    std::stable_partition(hierarchies_.begin(), hierarchies_.end(), [](const Hierarchy &h) { return !h.unified; });
    std::string found;
    for (const Hierarchy &h : hierarchies_) {
        found += found.empty() ? "" : ", ";
        found += std::string(h.unified ? "v2" : "v1") + (h.memory ? " memory" : "") + (h.pids ? " pids" : "") +
                 (h.cpu ? " cpu" : "") + (h.devices ? " devices" : "") + (h.unified ? " kill" : "") + " in " + h.path;
    }
    return found.empty() ? "control groups cannot be used; grains are tracked by their processes"
                         : "control groups: " + found;
}

bool Cgroups::set_limits(const Hierarchy &h, const std::string &leaf, const files::Limits &limits, Leaf &made) const {
    if (h.memory && limits.memory_mb > 0) {
        const std::string bytes = std::to_string(limits.memory_mb << 20);
        if (h.unified) {
            made.memory = write_control(leaf + "/memory.max", bytes);
            write_control(leaf + "/memory.swap.max", "0");
            write_control(leaf + "/memory.oom.group", "1");
        } else {
            made.memory = write_control(leaf + "/memory.limit_in_bytes", bytes);
            write_control(leaf + "/memory.memsw.limit_in_bytes", bytes);
            write_control(leaf + "/memory.swappiness", "0");
        }
    }
    if (h.pids && limits.processes > 0) {
        made.processes = write_control(leaf + "/pids.max", std::to_string(limits.processes));
        made.refusals = Fd(::open((leaf + "/pids.events").c_str(), O_RDONLY | O_CLOEXEC));
    }
    h.weigh(leaf);
    made.weighed = made.weighed || h.cpu;
    if (h.unified) made.directory = Fd(::open(leaf.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    made.joins.emplace_back(::open((leaf + h.members()).c_str(), O_RDWR | O_CLOEXEC));
    return static_cast<bool>(made.joins.back());
}

bool Cgroups::denies_devices() const {
    return std::any_of(hierarchies_.begin(), hierarchies_.end(), [](const Hierarchy &h) { return h.devices; });
}

bool Cgroups::set_all_limits() const {
    const auto any = [&](bool Hierarchy::*controller) {
        return std::any_of(hierarchies_.begin(), hierarchies_.end(), [&](const Hierarchy &h) { return h.*controller; });
    };
    return any(&Hierarchy::memory) && any(&Hierarchy::pids);
}

Leaf Cgroups::make(const std::string &name, const files::Limits &limits, const Devices &denied) const {
    DCS_REQUIRE(is_leaf_name(name), "the name of a leaf is valid");
    Leaf made{.name = name, .processes_max = limits.processes, .memory_max_mb = limits.memory_mb};
    for (const Hierarchy &h : hierarchies_) {
        if (!h.serves(limits, denied)) continue;
        const std::string leaf = h.path + "/" + name;
        // The group is nearly always there.
        const bool there = make_group_directory(leaf) || (h.make_group() && make_group_directory(leaf));
        const bool filtered = !h.devices || denied.empty() || (there && deny_devices(leaf, h.unified, denied));
        if (there && filtered && set_limits(h, leaf, limits, made)) {
            made.there = true;
            if (h.devices) made.denied = denied;
            continue;
        }
        remove(name);
        return {};
    }
    return made;
}

Leaf Cgroups::seen(const std::string &name, const files::Limits &limits, const Devices &denied) const {
    DCS_REQUIRE(is_leaf_name(name), "the name of a leaf is valid");
    Leaf leaf{.name = name, .processes_max = limits.processes, .memory_max_mb = limits.memory_mb, .there = true};
    for (const Hierarchy &h : hierarchies_) {
        if (!h.serves(limits, denied)) continue;
        if (h.devices) leaf.denied = denied;
        const std::string path = h.path + "/" + name;
        leaf.joins.emplace_back(::open((path + h.members()).c_str(), O_RDONLY | O_CLOEXEC));
        if (h.pids && limits.processes > 0)
            leaf.refusals = Fd(::open((path + "/pids.events").c_str(), O_RDONLY | O_CLOEXEC));
    }
    return leaf;
}

std::vector<std::string> Cgroups::places() const {
    std::vector<std::string> above;
    for (const Hierarchy &h : hierarchies_) above.push_back(h.path.substr(0, h.path.rfind('/')));
    return above;
}

std::vector<std::string> Cgroups::leaves() const {
    std::set<std::string> names;
    for (const Hierarchy &h : hierarchies_)
        if (const Result<Fd> fd = open_directory(AT_FDCWD, h.path))
            if (const Result<std::vector<std::string>> all = list_directory(fd->get()))
                for (const std::string &name : *all) {
                    struct stat st {};
                    if (::fstatat(fd->get(), name.c_str(), &st, 0) == 0 && S_ISDIR(st.st_mode)) names.insert(name);
                }
    return {names.begin(), names.end()};
}

std::vector<pid_t> Cgroups::members(const std::string &name) const {
    std::set<pid_t> pids;
    for (const Hierarchy &h : hierarchies_)
        for (const pid_t pid : cgroup_members(h.path + "/" + name)) pids.insert(pid);
    return {pids.begin(), pids.end()};
}

void Cgroups::seal(const std::string &name) const {
    DCS_REQUIRE(is_leaf_name(name), "the name is that of a leaf");
    for (const Hierarchy &h : hierarchies_) {
        const std::string leaf = h.path + "/" + name;
        if (h.pids) write_control(leaf + "/pids.max", "0");
        if (h.unified) write_control(leaf + "/cgroup.kill", "1");
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

bool Cgroups::is_empty(const Leaf &leaf) {
    char first;
    for (const Fd &procs : leaf.joins)
        if (::pread(procs.get(), &first, 1, 0) != 0) return false;
    return !leaf.joins.empty();
}

std::int64_t Cgroups::refused_in(const Leaf &leaf) {
    char text[64];
    const ssize_t n = leaf.refusals ? ::pread(leaf.refusals.get(), text, sizeof text, 0) : 0;
    return n > 0 ? count_of(std::string(text, static_cast<std::size_t>(n)), "max") : 0;
}

bool Cgroups::remove(const std::string &name) const {
    DCS_REQUIRE(is_leaf_name(name), "only leaves of grains are removed");
    bool gone = true;
    for (const Hierarchy &h : hierarchies_)
        if (::rmdir((h.path + "/" + name).c_str()) != 0 && errno != ENOENT) gone = false;
    return gone;
}

void Cgroups::remove_group() const {
    for (const Hierarchy &h : hierarchies_) ::rmdir(h.path.c_str());
}

Devices denied_to(const Cgroups &cgroups, const files::LaunchRecord &launch, const GivenResources &given) {
    return gpus_by_file() && cgroups.denies_devices() ? others_devices(launch.offers, given) : Devices();
}

}  // namespace dcs::starter
