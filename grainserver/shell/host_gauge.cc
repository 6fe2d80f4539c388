#include "grainserver/shell/host_gauge.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <unistd.h>

#include "process/table.h"

namespace dcs::server {
namespace {
// Only the first processes or threads of a grain are counted, to bound the cost of a look.
constexpr std::size_t tasks_max = 64;
constexpr std::size_t text_max = 4u << 20;

std::int64_t tick_us() { return 1'000'000 / std::max(::sysconf(_SC_CLK_TCK), 1l); }

// Parses the line "cpu" of /proc/stat: user nice system idle iowait irq softirq steal; and one line for each core.
void put_processors(const std::string &text, HostSample &sample) {
    std::int64_t v[8] = {};
    std::sscanf(text.c_str(),
                "cpu %" SCNd64 " %" SCNd64 " %" SCNd64 " %" SCNd64 " %" SCNd64 " %" SCNd64 " %" SCNd64 " %" SCNd64, v,
                v + 1, v + 2, v + 3, v + 4, v + 5, v + 6, v + 7);
    std::int64_t total = 0;
    for (const std::int64_t n : v) total += n;
    sample.total_us = total * tick_us();
    sample.busy_us = (total - v[3] - v[4]) * tick_us();
    sample.yielding_us = v[1] * tick_us();
    sample.cores = 0;
    for (std::size_t at = text.find("\ncpu"); at != std::string::npos; at = text.find("\ncpu", at + 1)) ++sample.cores;
    sample.cores = std::max(sample.cores, 1);
}

void put_process(const std::string &process, GrainSample &sample) {
    ProcessStat stat;
    const std::string line = text_of(process + "/stat");
    if (!parse_stat(line, stat)) return;
    sample.cpu_us += static_cast<std::int64_t>(stat.user_ticks + stat.system_ticks) * tick_us();
    sample.ready = sample.ready || stat.state == 'R';
    std::int64_t size = 0, resident = 0, shared = 0;
    if (std::sscanf(text_of(process + "/statm").c_str(), "%" SCNd64 " %" SCNd64 " %" SCNd64, &size, &resident,
                    &shared) == 3)
        sample.memory_kb += std::max<std::int64_t>(0, resident - shared) * (::sysconf(_SC_PAGESIZE) / 1024);
}
}  // namespace

std::string text_of(const std::string &path) { return kernel_text(path, text_max); }

std::int64_t number_after(const std::string &text, const std::string &name) {
    for (std::size_t at = text.find(name); at != std::string::npos; at = text.find(name, at + 1)) {
        const std::size_t end = at + name.size();
        if ((at != 0 && text[at - 1] != '\n' && text[at - 1] != ' ') || end >= text.size()) continue;
        if (text[end] == ' ' || text[end] == ':' || text[end] == '=')
            return std::max(std::strtoll(text.c_str() + end + 1, nullptr, 10), -1ll);  // none is below 0
    }
    return -1;
}

HostFigures HostGauge::figures() {
    groups_ = memory_groups(root_);  // repeated, because the server may be moved to another group
    HostFigures figures{.load = std::atof(text_of(root_ + "/proc/loadavg").c_str())};
    HostSample sample;
    put_memory(sample);
    figures.free_memory_kb = sample.free_kb;
    figures.memory_kb = usable_memory_kb();
    return figures;
}

std::int64_t HostGauge::usable_memory_kb() const {
    std::int64_t least = std::max<std::int64_t>(number_after(text_of(root_ + "/proc/meminfo"), "MemTotal"), 0);
    for (const MemoryGroup &group : groups_) {
        std::int64_t memory = 0, free = 0;
        if (read_group(group, memory, free)) least = std::min(least, memory);
    }
    return least;
}

void HostGauge::put_memory(HostSample &sample) const {
    const std::string text = text_of(root_ + "/proc/meminfo");
    sample.memory_kb = std::max<std::int64_t>(number_after(text, "MemTotal"), 0);
    sample.free_kb = std::max<std::int64_t>(number_after(text, "MemAvailable"), 0);
    for (const MemoryGroup &group : groups_) {
        std::int64_t memory = 0, free = 0;
        if (!read_group(group, memory, free) || free >= sample.free_kb) continue;
        sample.memory_kb = memory;
        sample.free_kb = free;
        sample.memory_of = "control group " + group.name;
    }
}

HostSample HostGauge::host() {
    if (groups_.empty()) groups_ = memory_groups(root_);
    HostSample sample;
    put_processors(text_of(root_ + "/proc/stat"), sample);
    put_memory(sample);
    const std::string stalled = text_of(root_ + "/proc/pressure/memory");
    sample.stalled_us = stalled.compare(0, 5, "some ") == 0 ? number_after(stalled, "total") : -1;
    if (sample.stalled_us >= 0) return sample;
    const std::string paging = text_of(root_ + "/proc/vmstat");
    sample.swapped_pages = std::max<std::int64_t>(number_after(paging, "pswpin"), 0) +
                           std::max<std::int64_t>(number_after(paging, "pswpout"), 0);
    return sample;
}

std::vector<pid_t> tree_of(pid_t first) {
    std::vector<pid_t> tree = {first};
    std::size_t tasks = 0;
    for (std::size_t i = 0; i < tree.size() && tasks < tasks_max; ++i) {
        const std::string process = "/proc/" + std::to_string(tree[i]) + "/task";
        for (const int thread : numbers_in(process)) {
            if (++tasks > tasks_max) break;
            for (const pid_t child : pids_in(process + "/" + std::to_string(thread) + "/children"))
                if (tree.size() < tasks_max) tree.push_back(child);
        }
    }
    return tree;
}

GrainSample HostGauge::grain(pid_t first) const {
    GrainSample sample;
    std::vector<pid_t> tree = {first};
    std::size_t tasks = 0;
    for (std::size_t i = 0; i < tree.size() && tasks < tasks_max; ++i) {
        const std::string process = root_ + "/proc/" + std::to_string(tree[i]);
        put_process(process, sample);
        for (const int thread : numbers_in(process + "/task")) {
            if (++tasks > tasks_max) break;
            const std::string task = process + "/task/" + std::to_string(thread);
            std::int64_t ran = 0, waited = 0;
            if (std::sscanf(text_of(task + "/schedstat").c_str(), "%" SCNd64 " %" SCNd64, &ran, &waited) == 2)
                sample.waited_us = std::max<std::int64_t>(sample.waited_us, 0) + waited / 1000;
            for (const pid_t child : pids_in(task + "/children"))
                if (tree.size() < tasks_max) tree.push_back(child);
        }
    }
    return sample;
}

}  // namespace dcs::server
