#pragma once
// What confines a grain besides its account and its limits (base/confinement.h names the rungs). Made before the
// fork, put on between fork and exec, where nothing may allocate.
#include <string>
#include <vector>

#include <sys/types.h>

#include "base/confinement.h"
#include "base/files.h"
#include "grainserver/files/syscall_filter.h"

namespace dcs::files {

struct Confinement {
    Rungs rungs = 0;
    std::vector<sock_filter> filter;  // empty: none
    Fd ruleset;                       // of the kernel's Landlock; none: not that
};
struct ConfinementWish {
    Rungs rungs = 0;
    int room = -1;                      // the grain's, open
    std::vector<std::string> writable;  // directories besides it, for rung_files; those that are not there are left out
};
Result<Confinement> make_confinement(const ConfinementWish &wish);

// First half, with the rights of the server: scratch, IPC and /proc of its own (rung_namespaces). /tmp, /var/tmp
// and /dev/shm are the directory `tmp` in the room from then on; the descriptor `room` and the present directory,
// which is the room, lie in the new mounts, all other descriptors do not. An errno, or 0.
int enter_namespaces(const Confinement &confinement, int room, uid_t uid, gid_t gid) noexcept;
// Second half, with the grain's own rights and no new privileges. An errno, or 0.
int put_confinement_on(const Confinement &confinement) noexcept;

// Directories that everybody may write to.
bool is_below_scratch(const std::string &path);
struct Lack { Rungs rungs; std::string why; };
struct Available {
    Rungs rungs = 0;
    std::vector<Lack> lacks;  // the others
};
// What this host can give to grains of a server whose directory is `directory` (real path); each is tried in a
// process of its own. `users`: they get accounts of their own.
Available rungs_available(bool users, const std::string &directory);

}  // namespace dcs::files
