#include "storm.h"

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <memory>

#include <linux/sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace storm {
namespace {

constexpr std::size_t witnesses_max = 12;

std::atomic<int> *signals_of_witnesses = nullptr;

[[noreturn]] void witness() {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (int number = 1; number < 65; ++number) ::signal(number, [](int) { ++*signals_of_witnesses; });
    for (;;) ::pause();
}

// A worker that was ordered to hang: it stays until a process ends it, deaf to the polite signals every other time.
void hang(Arena &arena, Occupant &self, Random &random) {
    if (pick(random, 2) == 0) {
        ::signal(SIGINT, SIG_IGN);
        ::signal(SIGTERM, SIG_IGN);
    }
    self.hangs = true;
    while (!arena.over) {
        ++self.beat;
        sleep_ns(1'000'000);
    }
    ::signal(SIGINT, SIG_DFL);
    ::signal(SIGTERM, SIG_DFL);
}

// Dies while a child of its has the descriptors of the lock, which so outlives its owner for a while.
[[noreturn]] void leak() {
    if (::fork() == 0) {
        sleep_ns(60'000'000);
        ::_exit(0);
    }
    ::raise(SIGKILL);
    ::_exit(1);
}

[[noreturn]] void work(Arena &arena, const Round &round, int index, std::uint64_t seed) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    Random random(seed);
    Occupant &self = arena.occupants[index];
    settle(self);
    const std::unique_ptr<Family> family = round.kind->make(round.directory);
    while (!arena.over) {
        if (!family->acquire(arena, random)) {
            sleep_ns(200'000);
            continue;
        }
        enter(arena, self, family->area, family->shared);
        look_around(arena, self);
        const int chance = pick(random, 200);
        if (family->hangs && chance < 3) hang(arena, self, random);
        else if (family->hangs && chance < 4) leak();
        else beat_for(self, 50'000 + static_cast<std::int64_t>(random() % 300'000));
        leave(self);
        family->release();
        if (++arena.acquisitions >= arena.wanted) arena.over = true;
        if (pick(random, 4) == 0) sleep_ns(100'000);
    }
    ::_exit(0);
}

// A fork whose child has that pid; -1: it is taken, or not permitted.
pid_t fork_as(pid_t pid) {
    clone_args args = {};
    args.exit_signal = SIGCHLD;
    args.set_tid = reinterpret_cast<std::uintptr_t>(&pid);
    args.set_tid_size = 1;
    return static_cast<pid_t>(::syscall(SYS_clone3, &args, sizeof args));
}

class Crew {
public:
    Crew(Arena &arena, const Round &round) : arena_(arena), round_(round), random_(round.seed), witnesses_(arena) {
        pids_.resize(static_cast<std::size_t>(round.workers));
        for (int i = 0; i < 3; ++i) witnesses_.hire(0);
        for (int i = 0; i < round.workers; ++i) employ(i);
    }
    Outcome run() {
        Watchdog watchdog(round_.patience);
        while (!arena_.over && !outcome_.stalled && !arena_.told) {
            sleep_ns(50'000 + static_cast<std::int64_t>(random_() % 500'000));
            kill_one();
            while (reap(WNOHANG)) {}
            outcome_.stalled = watchdog.stalled(arena_);
        }
        return end();
    }

private:
    void employ(int index) {
        const std::uint64_t seed = random_();
        const pid_t pid = ::fork();
        if (pid == 0) work(arena_, round_, index, seed);
        pids_[static_cast<std::size_t>(index)] = pid;
    }
    // While a process hangs, it is mostly left to those who end it when its lock has expired. In the last fifth no
    // process is killed: a death is no release, and a process that waits must be woken by that.
    void kill_one() {
        if (arena_.acquisitions > arena_.wanted - arena_.wanted / 5) return;
        const auto hangs = [&](int i) { return arena_.occupants[i].hangs.load(); };
        bool anybody = false;
        for (int i = 0; i < round_.workers; ++i) anybody = anybody || hangs(i);
        const std::size_t index = random_() % pids_.size();
        if (anybody && pick(random_, hangs(static_cast<int>(index)) ? 100 : 20) != 0) return;
        if (::kill(pids_[index], SIGKILL) == 0) ++outcome_.kills;
    }
    // False: no process is dead.
    bool reap(int flags) {
        const pid_t pid = ::waitpid(-1, nullptr, flags);
        if (pid <= 0) return false;
        if (witnesses_.lost(pid)) {
            ++outcome_.innocents;
            tell(arena_, "a witness, pid " + std::to_string(pid) + ", was killed");
        }
        const auto place = std::find(pids_.begin(), pids_.end(), pid);
        if (place == pids_.end()) return true;
        const int index = static_cast<int>(place - pids_.begin());
        bury(arena_.occupants[index]);
        *place = 0;
        if (pick(random_, 4) == 0) witnesses_.hire(pid);
        if (!arena_.over) employ(index);
        return true;
    }
    Outcome end() {
        arena_.over = true;
        if (outcome_.stalled || arena_.told) {
            for (const pid_t pid : pids_)
                if (pid > 0) ::kill(pid, SIGKILL);
        }
        Watchdog watchdog(round_.patience);
        while (std::any_of(pids_.begin(), pids_.end(), [](pid_t pid) { return pid > 0; })) {
            if (!reap(WNOHANG)) sleep_ns(1'000'000);
            if (!watchdog.stalled(arena_)) continue;
            outcome_.stalled = true;
            for (const pid_t pid : pids_)
                if (pid > 0) ::kill(pid, SIGKILL);
        }
        if (arena_.signalled > 0) tell(arena_, "a witness was signalled");
        Outcome all = outcome_of(arena_);
        all.kills = outcome_.kills;
        all.innocents += outcome_.innocents;
        all.witnesses = witnesses_.hired();
        all.stalled = outcome_.stalled;
        return all;
    }

    Arena &arena_;
    const Round &round_;
    Random random_;
    Witnesses witnesses_;
    std::vector<pid_t> pids_;
    Outcome outcome_;
};

}  // namespace

Witnesses::~Witnesses() {
    while (!present_.empty()) dismiss(present_.front());
}

bool Witnesses::may_choose_pids() {
    const pid_t first = ::fork();
    if (first == 0) ::_exit(0);
    ::waitpid(first, nullptr, 0);
    const pid_t again = fork_as(first);
    if (again == 0) ::_exit(0);
    if (again > 0) ::waitpid(again, nullptr, 0);
    return again > 0;
}

bool Witnesses::hire(pid_t pid) {
    signals_of_witnesses = &arena_.signalled;
    if (present_.size() >= witnesses_max) dismiss(present_.front());
    const pid_t got = pid == 0 ? ::fork() : fork_as(pid);
    if (got == 0) witness();
    if (got < 0) return false;
    present_.push_back(got);
    ++hired_;
    return true;
}

bool Witnesses::lost(pid_t pid) {
    const auto place = std::find(present_.begin(), present_.end(), pid);
    if (place == present_.end()) return false;
    present_.erase(place);
    return true;
}

void Witnesses::dismiss(pid_t pid) {
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
    lost(pid);
}

bool Watchdog::stalled(const Arena &arena) {
    const std::int64_t now = now_ns();
    const int count = arena.acquisitions;
    if (count != seen_) {
        seen_ = count;
        since_ = now;
    }
    return now - since_ > patience_;
}

Outcome outcome_of(const Arena &arena) {
    Outcome outcome;
    outcome.acquisitions = arena.acquisitions;
    outcome.doubles = arena.doubles;
    outcome.bad_tokens = arena.bad_tokens;
    outcome.failures = arena.failures;
    outcome.innocents = arena.signalled;
    outcome.takeovers = arena.takeovers;
    outcome.crashes = arena.crashes;
    outcome.expired = arena.expired;
    if (arena.told) outcome.text = arena.text;
    return outcome;
}

Outcome run_workers(const Round &round) {
    const std::string path = round.directory + "/arena";
    Arena *arena = map_arena(path, true);
    if (arena == nullptr) std::abort();
    for (int i = 0; i < areas_max; ++i) arena->limits[i] = round.kind->limits[i];
    arena->wanted = round.acquisitions;
    arena->used = round.workers;
    const Outcome outcome = Crew(*arena, round).run();
    ::munmap(arena, sizeof(Arena));
    return outcome;
}

}  // namespace storm
