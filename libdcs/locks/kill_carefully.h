#pragma once
// "CONT, INT, TERM and KILL are sent in that order" (the paper, "Implementation") - to every process of the holder's
// tree, to no other, and only as long as it is that tree.
#include <cstdint>
#include <optional>
#include <string>

#include "locks/record.h"
#include "locks/world.h"

namespace dcs::locks {

struct KillGrace {  // how long to wait for the end after each signal, nanoseconds
    std::int64_t after_int = 2'000'000'000, after_term = 5'000'000'000, after_kill = 10'000'000'000;
};

enum class Killed : std::uint8_t {
    gone,           // nothing of the tree runs any more (maybe there was nothing)
    unkillable,     // something of it is in the kernel's uninterruptible sleep, or out of our reach
    not_permitted,  // it is somebody else's
    own_ancestor,   // it is the caller or one of its ancestors (the paper's Figure 4): nothing was signalled
    elsewhere,      // other host, other pid namespace, or a boot that is over: nothing was signalled
};

struct KillReport {
    Killed result = Killed::gone;
    int signalled = 0;   // processes that got at least one signal
    std::string text;    // what is left and why, for people; empty when gone
};

// Ends `owner`'s tree. A living supervisor is asked first (SIGTERM with the value expire_request; it owns the tree
// and ends it with the same care) and gets the graces and a second more; then all members, found by cgroup,
// cookie, group, session and descent, are held as pidfds before the first signal, CONT with each signal.
// `only`: processes of other accounts get no signal, whoever the caller is.
KillReport kill_carefully(const World &world, const Owner &owner, const KillGrace &grace,
                          std::optional<uid_t> only = {});

class RunTree;
// The signals themselves: until nothing of the tree runs, or nothing more can be done.
KillReport end_tree(RunTree &tree, const KillGrace &grace);

constexpr int expire_request = 0x6c6f636b;  // sigval of the SIGTERM that asks a supervisor to expire its command

}  // namespace dcs::locks
