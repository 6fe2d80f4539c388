#include "locks/run_tree.h"

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string_view>

#include <dirent.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"
#include "base/planted.h"
#include "base/require.h"
#include "process/cgroup.h"

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

constexpr char id_name[] = "DCS_LOCK_ID=", outer_name[] = "DCS_LOCK_OUTER=";
constexpr useconds_t short_pause_us = 10'000;
constexpr std::size_t outer_max = 64 * 17;  // bytes; more deeply nested runs are found by other marks

std::uint64_t tick_now() {
    const std::uint64_t per_second = static_cast<std::uint64_t>(::sysconf(_SC_CLK_TCK));
    return static_cast<std::uint64_t>(boot_clock().ns) / (1'000'000'000 / per_second);
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

std::string cookie_variable(std::uint64_t cookie) { return id_name + hex_of_number(cookie); }

std::vector<std::string> cookie_variables(std::uint64_t cookie) {
    std::vector<std::string> variables{cookie_variable(cookie)};
    const char *id = std::getenv("DCS_LOCK_ID"), *outer = std::getenv("DCS_LOCK_OUTER");
    if (id == nullptr) return variables;
    std::string all = id;
    if (outer != nullptr) all += std::string(",") + outer;
    variables.push_back(outer_name + all.substr(0, outer_max));
    return variables;
}

bool carries_cookie(const std::string &environment, std::uint64_t cookie) {
    const std::string_view text = environment;
    const std::string wanted = hex_of_number(cookie);
    for (std::size_t at = 0; at < text.size();) {
        const std::string_view variable = text.substr(at, text.find('\0', at) - at);
        at += variable.size() + 1;
        if (variable.starts_with(id_name) && variable.substr(sizeof id_name - 1) == wanted) return true;
        if (variable.starts_with(outer_name) && variable.find(wanted) != std::string_view::npos) return true;
    }
    return false;
}

RunTree::RunTree(TreeMarks marks) : marks_(std::move(marks)) {
    if (!is_leaf(marks_.leaf, marks_.cookie)) marks_.leaf.clear();
}

bool RunTree::marked(const ProcessStat &process) const {
    return marks_.cookie != 0 && process.start_time >= marks_.not_before &&
           carries_cookie(environment_of(process.pid), marks_.cookie);
}

// A group or session number is not reused while a process has it. So it still belongs to the run if a held member has
// it; otherwise it may belong to any process by now.
bool RunTree::number_is_ours(const ProcessTable &table, pid_t number, pid_t ProcessStat::*of) const {
    if (number <= 1) return false;
    if (planted("locks.group_alone")) return true;
    for (const auto &[key, member] : members_) {
        const ProcessStat *now = table.find(key.first);
        if (now != nullptr && now->start_time == key.second && now->*of == number && running(member)) return true;
    }
    return false;
}

// `seen` was found in a scan that began at `scan_tick`. A pid can be reused within one tick of a start time. A process
// that was some ticks old in the scan and has the same start time now is the same. A younger one must show again,
// under a handle, the mark that makes it a member.
bool RunTree::hold(const ProcessStat &seen, bool by_mark, std::uint64_t scan_tick) {
    if (members_.contains({seen.pid, seen.start_time})) return true;
    Result<ProcessHandle> handle = ProcessHandle::open({seen.pid, seen.start_time, 0});
    if (!handle && handle.status().code != Code::not_found) {
        out_of_reach_.insert({seen.pid, seen.start_time});
        trouble_ = handle.status();
    }
    if (!handle) return false;
    if (seen.start_time + 2 >= scan_tick) {
        ProcessStat now;
        const bool same = read_stat(seen.pid, now) && now.start_time == seen.start_time && now.parent == seen.parent &&
                          now.group == seen.group && now.session == seen.session;
        if (!same || (by_mark && !marked(now))) return false;
    }
    if (handle->ended(0)) return false;
    members_.emplace(Key{seen.pid, seen.start_time}, Member{seen, std::move(*handle)});
    return true;
}

// Without the table, where a process whose first thread has ended looks like a zombie.
void RunTree::hold_leader() {
    const ProcessIdentity &leader = marks_.leader;
    if (leader.pid <= 1 || members_.contains({leader.pid, leader.start_ticks})) return;
    ProcessStat stat;
    const bool there = read_stat(leader.pid, stat);
    Result<ProcessHandle> handle =
        ProcessHandle::open(planted("locks.pid_alone") ? ProcessIdentity{leader.pid, stat.start_time, 0} : leader);
    if (!handle || !there || !may_be_signalled(stat) || handle->ended(0)) return;
    members_.emplace(Key{leader.pid, leader.start_ticks}, Member{stat, std::move(*handle)});
}

FoundProcesses RunTree::look() {
    const std::uint64_t tick = tick_now();
    // Releases handles of ended processes, whose descriptors others may need.
    std::erase_if(members_, [&](const auto &entry) { return !running(entry.second); });
    const std::set<Key> known = std::exchange(out_of_reach_, {});
    const ProcessTable table;
    if (table.missed() != 0) out_of_reach_ = known;  // not seen is not ended
    trouble_ =
        table.missed() == 0 ? Status::ok() : fail_errno(Code::io_error, "cannot look at all processes", table.missed());
    hold_leader();
    if (planted("locks.leader_only")) return still_running();
    const bool group = number_is_ours(table, marks_.group, &ProcessStat::group);
    const bool session = number_is_ours(table, marks_.session, &ProcessStat::session);
    const Result<ProcessHandle> parent = ProcessHandle::open(marks_.parent);
    std::set<pid_t> first, by_mark;
    for (const pid_t pid : leaf_members(marks_.leaf)) first.insert(pid);
    for (const ProcessStat &p : table.all()) {
        if (!may_be_signalled(p)) continue;
        const Key key{p.pid, p.start_time};
        const bool ours = members_.contains(key) || known.contains(key) || (group && p.group == marks_.group) ||
                          (session && p.session == marks_.session) ||
                          (parent && p.parent == marks_.parent.pid && p.start_time >= marks_.not_before &&
                           !marks_.strangers.contains(p.pid));
        if (!ours && !marked(p)) continue;
        if (!ours) by_mark.insert(p.pid);
        first.insert(p.pid);
    }
    std::set<pid_t> held;  // every other member is one by a parent that is held
    for (const ProcessStat &p : table.family({first.begin(), first.end()}, 0)) {
        if (parent && p.pid == marks_.parent.pid) continue;
        if (!first.contains(p.pid) && !held.contains(p.parent)) continue;
        if (hold(p, by_mark.contains(p.pid), tick) || out_of_reach_.contains({p.pid, p.start_time})) held.insert(p.pid);
    }
    return still_running();
}

FoundProcesses RunTree::still_running() const {
    FoundProcesses found;
    for (const auto &[key, member] : members_)
        if (running(member)) found.processes.push_back(member.stat);
    found.unclear = !trouble_;
    return found;
}

void RunTree::signal(const ProcessStat &process, int number) {
    const Key key{process.pid, process.start_time};
    DCS_REQUIRE(process.pid > 1, "pids 0 and 1 are never signalled");
    const auto member = members_.find(key);
    if (member == members_.end() || !running(member->second)) return;
    // The handle identifies the process that was found, so its account cannot be that of a successor.
    if (marks_.only && runs_as(process.pid, *marks_.only) != RunsAs::yes) {
        if (running(member->second)) forbidden_.insert(key);
        return;
    }
    if (const Status sent = member->second.handle.signal(number)) signalled_.insert(key);
    else if (sent.code == Code::refused) forbidden_.insert(key);
}

bool RunTree::wait(std::int64_t until_ns, bool forbidden_too) const {
    return std::all_of(members_.begin(), members_.end(), [&](const auto &entry) {
        return (!forbidden_too && forbidden_.contains(entry.first)) || entry.second.handle.ended(until_ns);
    });
}

bool RunTree::wait_for(const FoundProcesses &found, std::int64_t until_ns, bool forbidden_too) const {
    if (!wait(until_ns, forbidden_too)) return false;
    if (found.unclear) ::usleep(short_pause_us);
    return boot_clock().ns < until_ns;
}

void RunTree::wait_for_all() {
    for (FoundProcesses found = look(); !is_over(found); found = look()) wait_for(found, INT64_MAX, true);
}

bool RunTree::holds_any(const std::vector<pid_t> &pids) const {
    return std::any_of(members_.begin(), members_.end(), [&](const auto &entry) {
        return running(entry.second) && std::find(pids.begin(), pids.end(), entry.first.first) != pids.end();
    });
}

std::vector<ProcessStat> RunTree::left(bool forbidden) const {
    std::vector<ProcessStat> processes;
    for (const auto &[key, member] : members_)
        if (running(member) && forbidden_.contains(key) == forbidden) processes.push_back(member.stat);
    return processes;
}

}  // namespace dcs::locks
