// Limits and weights that the kernel does not enforce: checked a few times a second, at low cost.
#include <algorithm>
#include <csignal>

#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/planted.h"
#include "base/require.h"
#include "grainserver/files/say.h"
#include "grainserver/launcher/launcher.h"

namespace dcs::launcher {
namespace {
std::string amount(std::int64_t n, const char *what) { return std::to_string(n) + " " + what; }
std::string memory_words(const files::Limits &l) {
    return "the grain used more than its " + amount(l.memory_mb, "MB of memory") +
           "; submit it with more --memory, if --max-memory-mb of the host permits more";
}
// Limits that grains do not choose.
std::string set_by(const char *option) {
    return std::string("; ") + option + " of the host's grain server sets this limit";
}
std::string process_words(const files::Limits &l) {
    return "the grain had more than its " + amount(l.processes, "processes") + set_by("--max-processes");
}

struct Use {
    std::int64_t bytes = 0, threads = 0, cpu_s = 0;
};
Use use_of(const std::vector<ProcessStat> &tree, const files::ExitRecord &ended) {
    static const std::int64_t page = ::sysconf(_SC_PAGESIZE), ticks = std::max(::sysconf(_SC_CLK_TCK), 1l);
    Use use;
    std::uint64_t pages = 0, threads = 0, cpu = 0;
    for (const ProcessStat &p : tree) {
        pages += p.resident_pages;
        threads += p.threads;
        cpu += p.user_ticks + p.system_ticks;
    }
    use.bytes = static_cast<std::int64_t>(pages) * page;
    use.threads = static_cast<std::int64_t>(threads);
    use.cpu_s = static_cast<std::int64_t>(cpu) / ticks + (ended.user_us + ended.system_us) / 1'000'000;
    return use;
}

// The limit that its processes exceed; signal 0: none.
struct Broken {
    int signal = 0;
    std::string words;
};
Broken broken_by(const Use &use, const files::Limits &l, bool memory_by_group, bool processes_by_group) {
    if (l.memory_mb > 0 && !memory_by_group && use.bytes > l.memory_mb << 20) return {SIGKILL, memory_words(l)};
    if (l.processes > 0 && !processes_by_group && use.threads > l.processes) return {SIGKILL, process_words(l)};
    if (l.cpu_s > 0 && use.cpu_s > l.cpu_s)
        return {SIGXCPU,
                "the grain used more than its " + amount(l.cpu_s, "s of processor time") + set_by("--max-cpu-s")};
    return {};
}

bool needs_table(const files::Limits &l, bool memory_by_group, bool processes_by_group) {
    return (l.memory_mb > 0 && !memory_by_group) || (l.processes > 0 && !processes_by_group) || l.cpu_s > 0 ||
           l.disk_mb > 0;
}

// Bounds one scan, also if a grain forks endlessly.
constexpr std::size_t processes_max = 512;

void add_children(pid_t pid, std::vector<pid_t> &pids) {
    const std::string tasks = "/proc/" + std::to_string(pid) + "/task/";
    for (const int thread : numbers_in(tasks))
        for (const pid_t child : pids_in(tasks + std::to_string(thread) + "/children"))
            if (pids.size() < processes_max) pids.push_back(child);
}
}  // namespace

void Launcher::over(const std::string &dir, Running &grain, int signal, const std::string &words) {
    DCS_REQUIRE(signal > 0 && !words.empty(), "a limit has a signal and a text");
    if (grain.exit.limit_signal != 0 || grain.stopped_by_us) return;
    grain.exit.limit_signal = signal;
    grain.exit.reason = words;
    files::say(dir + ": " + words);
    kill_tree(dir, grain);
}

// Its first process has just ended: notes a limit that the kernel enforces as the cause. After success only one by
// which the kernel has killed another process of the grain: a shell may not notice, but its result lacks something.
void Launcher::note_limit(const std::string &dir, Running &grain) {
    DCS_REQUIRE(grain.exit.known, "the exit status is known");
    const int status = grain.exit.status;
    if (grain.exit.limit_signal != 0) return;
    if (grain.leaf.memory && cgroups_.ran_out_of_memory(grain.leaf.name))
        return over(dir, grain, SIGKILL, memory_words(grain.limits));
    if (status == 0) return;
    if (grain.leaf.processes && Cgroups::refused_in(grain.leaf) > grain.leaf.refused)
        return over(dir, grain, SIGKILL, process_words(grain.limits));
    if (grain.limits.file_mb > 0 && WIFSIGNALED(status) && WTERMSIG(status) == SIGXFSZ)
        over(dir, grain, SIGXFSZ,
             "the grain wrote a file of more than its " + amount(grain.limits.file_mb, "MB") + set_by("--max-file-mb"));
}

void Launcher::watch_one(const std::string &dir, Running &grain, const ProcessTable *table) {
    const files::Limits &l = grain.limits;
    if (grain.leaf.memory && cgroups_.ran_out_of_memory(grain.leaf.name))
        return over(dir, grain, SIGKILL, memory_words(l));
    if (grain.leaf.processes && Cgroups::refused_in(grain.leaf) > grain.leaf.refused)
        return over(dir, grain, SIGKILL, process_words(l));
    std::vector<pid_t> own, unclaimed;
    if (table != nullptr) {
        Members members = members_in(*table, dir, grain);
        for (const ProcessStat &p : members.found.processes) own.push_back(p.pid);
        for (const ProcessStat &p : members.unclaimed) unclaimed.push_back(p.pid);
        const auto judge = [&](const std::vector<ProcessStat> &processes) {
            return broken_by(use_of(processes, grain.exit), l, grain.leaf.memory, grain.leaf.processes);
        };
        if (const Broken alone = judge(members.found.processes); alone.signal != 0)
            return over(dir, grain, alone.signal, alone.words);
        std::vector<ProcessStat> &all = members.found.processes;
        all.insert(all.end(), members.unclaimed.begin(), members.unclaimed.end());
        if (const Broken with = judge(all); with.signal != 0 && !members.unclaimed.empty())
            end_unclaimed(dir, grain, with.words);
    }
    if (l.disk_mb == 0) return;
    const auto used = starter_.disk(dir, own, false);
    if (used && used->too_deep && !planted("launcher.any_depth"))
        return over(dir, grain, SIGXFSZ,
                    "the grain has directories more than " + std::to_string(starter::DiskUse::depth_max) +
                        " deep in its own, and what they hold cannot be counted for its limit of " +
                        amount(l.disk_mb, "MB") + set_by("--max-disk-mb"));
    if (used && used->too_many)
        return over(dir, grain, SIGXFSZ,
                    "the grain's processes have more than " + std::to_string(starter::DiskUse::places_max) +
                        " files open or mapped, and those without a name cannot be counted for its limit of " +
                        amount(l.disk_mb, "MB") + set_by("--max-disk-mb"));
    const std::string words =
        "the grain kept more than its " + amount(l.disk_mb, "MB in its directory") + set_by("--max-disk-mb");
    if (used && used->bytes > l.disk_mb << 20) return over(dir, grain, SIGXFSZ, words);
    if (!used || unclaimed.empty() || planted("launcher.unclaimed_is_free")) return;
    const auto more = starter_.disk(dir, unclaimed, true);
    if (more && (more->too_many || used->bytes + more->bytes > l.disk_mb << 20)) end_unclaimed(dir, grain, words);
}

void Launcher::watch(Instant now) {
    const auto by_table = [](const Running &grain) {
        return needs_table(grain.limits, grain.leaf.memory, grain.leaf.processes);
    };
    std::optional<ProcessTable> table;
    for (const auto &[dir, grain] : grains_)
        if (!table && grain.watched() && grain.next_watch <= now && by_table(grain)) table.emplace();
    next_watch_ = look_at_due(
        grains_, now, boot_clock() - now, boot_clock,
        [&](const std::string &dir, Running &grain) { watch_one(dir, grain, by_table(grain) ? &*table : nullptr); });
}

bool NewSessions::matter() {
    static const bool do_they = ::access("/proc/self/autogroup", W_OK) == 0;
    return do_they;
}

// Starts at the launcher's own children, which include all orphans.
bool NewSessions::lower(const std::set<pid_t> &grains, starter::StarterClient &starter) {
    std::map<pid_t, bool> seen;
    std::vector<pid_t> tree = own_children();
    const pid_t own_session = ::getsid(0);
    bool all = true;
    for (std::size_t i = 0; i < tree.size(); ++i) {
        add_children(tree[i], tree);
        ProcessStat stat;
        if (!read_stat(tree[i], stat) || stat.session == own_session || grains.count(stat.session) != 0 ||
            seen.count(stat.session) != 0)
            continue;
        const auto known = seen_.find(stat.session);
        const bool done = (known != seen_.end() && known->second) || starter.lower(tree[i]);
        seen[stat.session] = done;
        all = all && done;
    }
    seen_ = std::move(seen);  // forgets ended sessions, whose numbers are reused
    return all;
}

}  // namespace dcs::launcher
