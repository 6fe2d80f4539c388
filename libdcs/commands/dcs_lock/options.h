#pragma once
// The parsed command line of dcs_lock. Pure: opens no file and reads no clock (but -j @FILE reads FILE).
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "base/status.h"
#include "locks/adaptive_lock.h"
#include "locks/supervision.h"

namespace dcs::lock_command {

// Exit codes of dcs_lock; all others are the command's own, or 128 + the signal that ended it.
namespace exits {
constexpr int ok = 0;
constexpr int findings = 1;        // doctor
constexpr int busy = 75;           // or timed out; EX_TEMPFAIL, as in lckdo
constexpr int not_permitted = 77;  // the expired holder belongs to another user
constexpr int too_soon = 79;
constexpr int expired = 124;  // the command was ended at its limit, as in timeout(1)
constexpr int failed = 125;   // an error of dcs_lock, or wrong usage
constexpr int cannot_execute = 126;
constexpr int not_found = 127;
}  // namespace exits

enum class Verb : unsigned {
    run = 1,
    descriptor = 2,
    get = 4,
    put = 8,
    list = 16,
    check = 32,
    wait = 64,
    breaking = 128,
    log = 256,
    advise = 512,
    doctor = 1024,
    pass = 2048,
    help = 4096,
    version = 8192,
};

struct Limit {
    std::string name;
    int count = 0;
};

struct Options {
    Verb verb = Verb::run;
    // what to lock
    std::string name;                 // NAME; empty: none
    std::optional<locks::Atom> atom;  // -a, get, put
    int descriptor = -1;
    std::vector<Limit> limits;   // -l
    std::optional<int> at_most;  // -j
    // how
    std::optional<std::int64_t> wait;  // -w, nanoseconds; -n is 0
    bool queue = false, shared = false;
    std::int64_t if_elapsed = 0, expire_after = locks::no_limit;
    bool adaptive = false;  // -i or -e was given
    bool if_elapsed_given = false;
    locks::Since since = locks::Since::end;
    std::optional<std::int64_t> expire_max;
    locks::KillGrace grace;
    int max_kills = 3;
    unsigned mode = 0600;
    bool literal = false;
    locks::Keep keep = locks::Keep::both;
    bool fail_open = false;
    // what to report
    int busy_code = exits::busy;
    bool busy_is_ok = false;
    bool verbose = false, json = false;
    int report_fd = -1;
    // options of single verbs
    bool head = false, ended_badly = false;
    std::optional<int> slot, last;
    pid_t holder = 0;                // get, put; 0: the caller's parent
    std::vector<std::string> words;  // the command
    std::string if_not_found;        // what to say if there is no such command: NAME may be meant as a verb

    // Without -n and -w: a command waits as flock(1) does; with -i or -e a busy atom is refused at once.
    bool waits() const { return wait ? *wait > 0 : !adaptive; }
    bool has_atom() const { return atom.has_value() || !name.empty(); }
    // NAME alone with -j is a set of counted slots; with an adaptive lock -j limits the operator's instances.
    bool slots_only() const { return at_most && !adaptive && !atom; }
};

}  // namespace dcs::lock_command
