#pragma once
// What happens between fork and exec. The child shares the launcher's memory until its exec, so nothing here
// allocates, and identities change by the bare system calls: libc's would tell threads that are not ours.
#include <cstdint>

#include <sys/types.h>

#include "grainserver/files/confine.h"

namespace dcs::launcher {

enum class Step : std::int32_t { group, identity, confinement, streams, directory, pid_file, orphaned, exec, runner };
enum class There : std::int32_t { nothing, something, directory };  // as the grain itself sees it
struct Failure { Step step; std::int32_t error; There program; };

// Everything that the child needs, made before the fork.
struct Plan {
    int grain = -1, room = -1, report = -1;
    const char *out = nullptr, *err = nullptr;  // names of its streams
    const char *directory = nullptr, *program = nullptr, *boot_id = nullptr;
    const char *runner = nullptr;  // executed in the program's place, which is among its arguments
    char *const *argv = nullptr;
    char *const *env = nullptr;
    pid_t launcher = 0;
    bool only_prove = false;
    const int *joins = nullptr;        // control groups to enter
    int join_count = 0;
    bool change_user = false;
    uid_t uid = 0;
    gid_t gid = 0;
    const gid_t *groups = nullptr;
    unsigned group_count = 0;
    std::uint64_t file_bytes = 0;      // 0: no limit, both
    std::uint64_t user_processes = 0;  // of all processes of that uid
    const files::Confinement *confinement = nullptr;
};

// vfork: the launcher is suspended until the exec, its few pages are not copied. The child says through
// plan.report why it could not become the grain.
pid_t fork_grain(const Plan &plan);

}  // namespace dcs::launcher
