// The storm over dcs_lock itself: supervisors and commands are killed. A hanging command has children that left its
// group and ignore the polite signals; when its lock expires, nothing of it may be left.
#include <algorithm>
#include <csignal>
#include <cstdlib>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "process/table.h"
#include "storm.h"

namespace storm {
namespace {

struct Form {
    int area;
    std::vector<std::string> words;
};

const Form forms[] = {
    {1, {"-e", "0.1s", "-w", "600", "--grace", "0.05s,0.05s,20s", "--max-kills", "1000", "-i", "0", "adaptive"}},
    {2, {"-q", "queue"}},
    {4, {"-j", "3", "-w", "600", "counted"}},
    {8, {"-l", "a:2", "-l", "b:4", "-w", "600"}},
};

struct Job {
    pid_t pid = 0;
    int index = 0;
    bool expires = false;
    std::string mark;
};

// Commands are not our children: a process is signalled only while its pid certainly means it.
bool kill_exactly(pid_t pid, std::uint64_t born) {
    const int handle = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
    if (handle < 0) return false;
    dcs::ProcessStat stat;
    const bool same = dcs::read_stat(pid, stat) && stat.start_time == born;
    const bool sent = same && ::syscall(SYS_pidfd_send_signal, handle, SIGKILL, nullptr, 0) == 0;
    ::close(handle);
    return sent;
}

class Jobs {
public:
    Jobs(Arena &arena, const Round &round)
        : arena_(arena),
          round_(round),
          random_(round.seed),
          witnesses_(arena),
          self_(std::string("/proc/") + std::to_string(::getpid()) + "/exe") {
        jobs_.resize(static_cast<std::size_t>(round.workers));
        for (int i = 0; i < 3; ++i) witnesses_.hire(0);
        for (Job &job : jobs_) begin(job);
    }
    Outcome run() {
        Watchdog watchdog(round_.patience);
        while (!arena_.over && !arena_.told && !outcome_.stalled) {
            sleep_ns(500'000 + static_cast<std::int64_t>(random_() % 4'000'000));
            if (pick(random_, 3) == 0) kill_one(jobs_[random_() % jobs_.size()]);
            while (reap()) {}
            outcome_.stalled = watchdog.stalled(arena_);
        }
        return end();
    }

private:
    void begin(Job &job) {
        job = {};
        job.index = arena_.used;
        if (job.index >= occupants_max || arena_.over) return;
        ++arena_.used;
        const Form &form = forms[random_() % std::size(forms)];
        job.expires = form.area == 1;
        const bool hang = job.expires && pick(random_, 12) == 0;
        job.mark = "DCS_STORM=" + std::to_string(::getpid()) + "." + std::to_string(job.index);
        std::vector<std::string> words = {round_.command};
        words.insert(words.end(), form.words.begin(), form.words.end());
        for (const std::string &word :
             {std::string("--"), self_, std::string("--inside"), round_.directory + "/arena", std::to_string(job.index),
              std::to_string(form.area), std::string(hang ? "hang" : "work")})
            words.push_back(word);
        std::vector<char *> argv;
        for (std::string &word : words) argv.push_back(word.data());
        argv.push_back(nullptr);
        job.pid = ::fork();
        if (job.pid != 0) return;
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        const int log = ::open((round_.directory + "/log").c_str(), O_CREAT | O_APPEND | O_WRONLY, 0600);
        ::dup2(log, 2);
        ::setenv("DCS_LOCK_DIR", round_.directory.c_str(), 1);
        ::setenv("DCS_PLANTED", round_.plant.c_str(), 1);
        ::putenv(job.mark.data());
        ::execv(argv[0], argv.data());
        ::_exit(99);
    }
    void kill_one(const Job &job) {
        const Occupant &inside = arena_.occupants[job.index];
        const pid_t pid = inside.pid;
        if (inside.hangs && pick(random_, 8) != 0) return;  // its lock is to expire
        if (pick(random_, 2) == 0 && job.pid > 0) outcome_.kills += ::kill(job.pid, SIGKILL) == 0 ? 1 : 0;
        else if (pid > 0) outcome_.kills += kill_exactly(pid, inside.born) ? 1 : 0;
    }
    bool reap() {
        int status = 0;
        const pid_t pid = ::waitpid(-1, &status, WNOHANG);
        if (pid <= 0) return false;
        if (witnesses_.lost(pid)) {
            ++outcome_.innocents;
            tell(arena_, "a witness, pid " + std::to_string(pid) + ", was killed");
        }
        for (Job &job : jobs_) {
            if (job.pid != pid) continue;
            judge(job, status);
            if (pick(random_, 4) == 0) witnesses_.hire(pid);
            begin(job);
        }
        return true;
    }
    void judge(const Job &job, int status) {
        if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) return;  // by us
        const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
        if (code == 124) expired(job);
        if (code == 0 || code == 124 || code == 128 + SIGKILL) return;
        // It expired before it had told who runs its command, so it was signalled itself and passed that on.
        if (job.expires && (code == 128 + SIGINT || code == 128 + SIGTERM)) return;
        ++arena_.failures;
        tell(arena_, "dcs_lock ended with status " + std::to_string(code) + ", see " + round_.directory + "/log");
    }
    void expired(const Job &job) {
        ++arena_.expired;
        for (const dcs::ProcessStat &process : dcs::all_processes()) {
            if (process.state == 'Z' || process.state == 'X') continue;
            if (!dcs::has_variable(dcs::environment_of(process.pid), job.mark)) continue;
            ++outcome_.survivors;
            tell(arena_, "process " + std::to_string(process.pid) + " outlived the expiry of its command");
        }
    }
    Outcome end() {
        const bool wrong = outcome_.stalled || arena_.told;
        arena_.over = true;
        Watchdog watchdog(round_.patience);
        const auto runs = [](const Job &job) { return job.pid > 0; };
        while (std::any_of(jobs_.begin(), jobs_.end(), runs)) {
            if (!reap()) sleep_ns(1'000'000);
            outcome_.stalled = outcome_.stalled || watchdog.stalled(arena_);
            for (const Job &job : jobs_)
                if ((wrong || outcome_.stalled) && job.pid > 0) ::kill(job.pid, SIGKILL);
        }
        Outcome all = outcome_of(arena_);
        all.kills = outcome_.kills;
        all.survivors = outcome_.survivors;
        all.innocents += outcome_.innocents;
        all.witnesses = witnesses_.hired();
        all.stalled = outcome_.stalled;
        return all;
    }

    Arena &arena_;
    const Round &round_;
    Random random_;
    Witnesses witnesses_;
    std::string self_;
    std::vector<Job> jobs_;
    Outcome outcome_;
};

// What a hanging command leaves about: a child in a session of its own, and one whose parent is gone.
void bear_children(Arena &arena) {
    for (const bool orphan : {false, true}) {
        if (::fork() != 0) continue;
        ::setsid();
        if (orphan && ::fork() != 0) ::_exit(0);
        for (const int number : {SIGINT, SIGTERM, SIGHUP}) ::signal(number, SIG_IGN);
        while (goes_on(arena)) sleep_ns(2'000'000);
        ::_exit(0);
    }
}

}  // namespace

int inside_command(const std::string &arena_path, int index, int area, bool hang) {
    Arena *arena = map_arena(arena_path, false);
    if (arena == nullptr || index < 0 || index >= occupants_max) return 98;
    Occupant &self = arena->occupants[index];
    settle(self);
    enter(*arena, self, area, false);
    look_around(*arena, self);
    if (hang) {
        self.hangs = true;
        bear_children(*arena);
        ::signal(SIGINT, SIG_IGN);
        while (goes_on(*arena)) {
            ++self.beat;
            sleep_ns(1'000'000);
        }
    } else {
        beat_for(self, 100'000);
    }
    leave(self);
    if (++arena->acquisitions >= arena->wanted) arena->over = true;
    return 0;
}

Outcome run_commands(const Round &round) {
    Arena *arena = map_arena(round.directory + "/arena", true);
    if (arena == nullptr) std::abort();
    const int limits[areas_max] = {1, 1, 3, 2};
    for (int i = 0; i < areas_max; ++i) arena->limits[i] = limits[i];
    arena->wanted = round.acquisitions;
    const Outcome outcome = Jobs(*arena, round).run();
    ::munmap(arena, sizeof(Arena));
    return outcome;
}

}  // namespace storm
