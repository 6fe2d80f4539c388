#pragma once
// One round: workers of one family, and a killer who sends them SIGKILL at random moments.
#include <map>
#include <string>
#include <vector>

#include "family.h"

namespace storm {

struct Round {
    const FamilyKind *kind = nullptr;  // null: commands (commands.cc)
    std::string directory;
    std::string command, plant;  // dcs_lock, for commands; what is planted in it
    int workers = 8, acquisitions = 1000;
    std::uint64_t seed = 1;
    int patience = 60;  // seconds without an acquisition until it is a stall
};

struct Outcome {
    int acquisitions = 0, kills = 0, doubles = 0, bad_tokens = 0, innocents = 0, failures = 0, survivors = 0;
    int takeovers = 0, crashes = 0, expired = 0, witnesses = 0;
    bool stalled = false;
    std::string text;
    bool good() const {
        return doubles == 0 && bad_tokens == 0 && innocents == 0 && failures == 0 && survivors == 0 && !stalled;
    }
};

Outcome run_workers(const Round &round);
Outcome run_commands(const Round &round);
// What dcs_lock runs in a storm of commands.
int inside_command(const std::string &arena_path, int index, int area, bool hang);

// Strangers: processes that have nothing to do with the locks, some with the pid of a dead worker. No signal may
// reach them.
class Witnesses {
public:
    explicit Witnesses(Arena &arena) : arena_(arena) {}
    ~Witnesses();
    // `pid` 0: any. False: it cannot be had.
    bool hire(pid_t pid);
    // `pid` was reaped: true if it was a witness, who had no reason to die.
    bool lost(pid_t pid);
    int hired() const { return hired_; }
    // Choosing a pid takes a privilege.
    static bool may_choose_pids();

private:
    void dismiss(pid_t pid);
    Arena &arena_;
    std::vector<pid_t> present_;
    int hired_ = 0;
};

// Notices that nothing goes on any more.
class Watchdog {
public:
    explicit Watchdog(int seconds) : patience_(seconds * std::int64_t{1'000'000'000}) {}
    bool stalled(const Arena &arena);

private:
    std::int64_t patience_;
    int seen_ = -1;
    std::int64_t since_ = 0;
};

Outcome outcome_of(const Arena &arena);

}  // namespace storm
