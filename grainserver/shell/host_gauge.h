#pragma once
// Measurements of the host from a few reads of /proc: load, memory, processor time; and the usage of a grain's
// processes.
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <sys/types.h>

#include "grainserver/core/courtesy_state.h"

namespace dcs::server {

struct HostFigures {
    double load = 0;
    std::int64_t free_memory_kb = 0, memory_kb = 0;
};

// The text of a file of /proc or of control groups; empty if it cannot be read.
std::string text_of(const std::string &path);
// The number after `name` in lines of "name 17" or "name: 17 kB"; -1 if there is none.
std::int64_t number_after(const std::string &text, const std::string &name);

// The memory control groups (v1 or v2) that limit the server, its own first.
struct MemoryGroup {
    std::string directory, name;
    bool second_version = false;
};
std::vector<MemoryGroup> memory_groups(const std::string &root);
// The limit of a group and the memory left in it, counting reclaimable file pages as free. False: no limit.
bool read_group(const MemoryGroup &group, std::int64_t &memory_kb, std::int64_t &free_kb);

// The process and those below it, if there are not very many.
std::vector<pid_t> tree_of(pid_t first);

class HostGauge {
public:
    // `root`: the directory of proc and sys in tests; empty: the real ones.
    explicit HostGauge(std::string root = "") : root_(std::move(root)) {}
    HostFigures figures();
    HostSample host();
    // The tree below the grain's first process, itself included.
    GrainSample grain(pid_t first) const;

private:
    void put_memory(HostSample &sample) const;
    std::int64_t usable_memory_kb() const;  // of the host, or of the smallest group; 0: not known

    std::string root_;
    std::vector<MemoryGroup> groups_;
};

}  // namespace dcs::server
