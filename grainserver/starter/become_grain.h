#pragma once
// The steps between fork and exec. The child shares the starter's memory until its exec, so nothing here
// allocates memory, and identities change by raw system calls: libc's wrappers would notify threads of the starter.
#include <cstdint>
#include <optional>

#include <sched.h>
#include <sys/types.h>

#include "grainserver/files/confine.h"

namespace dcs::starter {

enum class Step : std::int32_t {
    group,
    cpus,
    identity,
    confinement,
    streams,
    directory,
    pid_file,
    orphaned,
    exec,
    runner
};
enum class There : std::int32_t { nothing, something, directory, script_with_cr };  // as visible to the grain
struct Failure {
    Step step;
    std::int32_t error;
    There program;
};

// What the child tells before its exec.
struct Told {
    volatile pid_t pid = 0;
    std::uint64_t start_ticks = 0;   // as in its file `pid`
    bool clock_agrees = false;       // that is what the clock says
    std::optional<Failure> failure;  // why it could not become the grain
};

// The data for the child, prepared before the fork.
struct Plan {
    int grain = -1, room = -1;
    int archive = -1;  // of the image, which the runner inherits
    Told *told = nullptr;
    bool own_memory = false;  // a copy of the caller's: else the kernel ends both where a limit is exceeded
    const char *out = nullptr, *err = nullptr;  // names of its output files
    bool used_again = false;  // an earlier grain of this account, of which no process is left, had the room
    const char *directory = nullptr, *program = nullptr, *boot_id = nullptr;
    std::int64_t forked_ns = 0, tick_ns = 0;  // by the boot clock, just before the fork; of start times in /proc
    bool start_by_clock = false;              // these go by that clock
    const char *runner = nullptr;             // executed instead of the program, which is among its arguments
    bool contained = false;  // the runner makes a container: program and directory are in it, and it confines
    char *const *argv = nullptr;
    char *const *env = nullptr;
    mode_t umask = 077;
    pid_t parent = 0;  // of the grain: this process, or its own parent
    bool only_prove = false;
    const int *joins = nullptr;  // control groups to enter
    int join_count = 0;
    int group = -1;                   // the directory of the last of them: that the child may be made in it
    const cpu_set_t *cpus = nullptr;  // those that it may run on; null: all
    bool change_user = false;
    uid_t uid = 0;
    gid_t gid = 0;
    const gid_t *groups = nullptr;
    unsigned group_count = 0;
    std::uint64_t file_bytes = 0;      // maximum size of a file; 0: no limit
    std::uint64_t user_processes = 0;  // maximum number of processes of the uid; 0: no limit
    const files::Confinement *confinement = nullptr;
    bool filtered = false;  // it inherits files::inherited_filter()
    bool modest = true;     // other processes of the host have priority
};

// As vfork: the caller is suspended until the exec or the end of the child, and shares its memory with it until then,
// unless plan.own_memory.
pid_t fork_grain(const Plan &plan);

}  // namespace dcs::starter
