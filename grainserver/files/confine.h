#pragma once
// The confinement of a grain besides its account and its limits (base/confinement.h lists the rungs). Prepared before
// the fork, applied between fork and exec, where no memory may be allocated.
#include <string>
#include <vector>

#include <sys/types.h>

#include "base/confinement.h"
#include "base/files.h"
#include "grainserver/files/syscall_filter.h"

namespace dcs::files {

struct Confinement {
    Rungs rungs = 0;
    std::vector<sock_filter> filter;    // empty: none
    Fd ruleset;                         // of the kernel's Landlock; not open: none
    std::vector<std::string> writable;  // that exist and can be written
};
struct ConfinementWish {
    Rungs rungs = 0;
    int room = -1;                      // descriptor of the grain's room
    std::vector<std::string> writable;  // further directories for rung_files; missing ones are ignored
};
Result<Confinement> make_confinement(const ConfinementWish &wish);
// The filter for a process whose grains with these rungs inherit it: theirs, but with clone3, which starts them.
std::vector<sock_filter> inherited_filter(Rungs rungs);

// First half, with the privileges of the server: private scratch directories, IPC and /proc (rung_namespaces). Makes
// /tmp, /var/tmp and /dev/shm the directory `tmp` in the room; the descriptor `room` and the working directory,
// which is the room, are in the new mounts, all other descriptors are not. Returns an errno, or 0.
int enter_namespaces(const Confinement &confinement, int room, uid_t uid, gid_t gid) noexcept;
// Second half, with the grain's own rights and no_new_privs. Returns an errno, or 0.
// `inherits`: the process has inherited_filter().
int put_confinement_on(const Confinement &confinement, bool inherits = false) noexcept;

// Whether the path is below a directory that all users can write.
bool is_below_scratch(const std::string &path);
struct Lack {
    Rungs rungs;
    std::string why;
};
struct Available {
    Rungs rungs = 0;
    std::vector<Lack> lacks;  // the unavailable rungs
};
// The rungs that this host supports for grains of a server whose directory is `directory` (real path); each is tried in
// a separate process. `users`: grains run under accounts of their own.
Available rungs_available(bool users, const std::string &directory);

}  // namespace dcs::files
