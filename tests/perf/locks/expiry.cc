// What happens when a lock expires, by the protocol of 1997 and by ours: two holders at once, strangers who are
// killed, and what is left of the holder's tree.
#include <csignal>
#include <fcntl.h>
#include <linux/sched.h>
#include <sys/syscall.h>

#include "bench.h"
#include "locks/adaptive_lock.h"
#include "process/table.h"
#include "locks/supervision.h"
#include "paper.h"

namespace dcs::locks::perf {
namespace {

constexpr int requesters = 8;
constexpr std::int64_t minute = 60'000'000'000;

// An hour later than it is: who took a lock in the real world has had it for an hour.
class Later final : public World {
public:
    Later() : World(this_world()) {}
    Moment now() const override {
        Moment moment = this_world().now();
        moment.wall += 60 * minute;
        moment.mono += 60 * minute;
        moment.boot += 60 * minute;
        return moment;
    }
};

struct Stage {
    std::atomic<int> ready{0}, granted{0}, inside{0}, doubles{0}, survivors{0};
    std::atomic<bool> go{false}, held{false}, signalled{false};
    std::atomic<pid_t> victim{0};
};

void at_the_barrier(Stage &stage) {
    ++stage.ready;
    spin_until([&] { return stage.go.load(); });
}

void inside(Stage &stage) {
    ++stage.granted;
    if (++stage.inside > 1) ++stage.doubles;
    sleep_ns(2'000'000);
    --stage.inside;
}

LockRequest request_for(const std::string &directory) {
    LockRequest request;
    request.place = place_at(directory, "atom");
    request.expire_after = 30 * minute;
    request.grace = {20'000'000, 20'000'000, 5'000'000'000};
    request.log = false;
    return request;
}

void run_stage(Stage &stage, const std::function<void()> &requester) {
    std::vector<pid_t> children;
    for (int i = 0; i < requesters; ++i) children.push_back(start(requester));
    spin_until([&] { return stage.ready == requesters; });
    stage.go = true;
    for (const pid_t child : children) finish(child);
}

// True: two were inside at once.
bool paper_round(const std::string &directory, bool expired) {
    Stage *stage = common<Stage>();
    PaperLock lock(directory, "atom");
    if (expired) {
        const pid_t dead = start([] {});
        finish(dead);
        lock.leave_expired(dead);
    }
    run_stage(*stage, [&] {
        PaperLock mine(directory, "atom");
        at_the_barrier(*stage);
        if (!mine.get(0, 90)) return;
        inside(*stage);
        mine.release();
    });
    const bool two = stage->doubles > 0;
    ::munmap(stage, sizeof(Stage));
    return two;
}

bool our_round(const std::string &directory, bool expired, int &granted) {
    Stage *stage = common<Stage>();
    pid_t victim = 0;
    if (expired) {
        victim = start([&] {
            ::signal(SIGINT, SIG_IGN);
            AdaptiveLock lock;
            if (AdaptiveLock::get(this_world(), request_for(directory), lock).denied != Denied::no) ::_exit(1);
            stage->held = true;
            for (;;) ::pause();
        });
        spin_until([&] { return stage->held.load(); });
    }
    ProcessStat victims;
    run_stage(*stage, [&] {
        const Later later;
        AdaptiveLock lock;
        at_the_barrier(*stage);
        if (AdaptiveLock::get(later, request_for(directory), lock).denied != Denied::no) return;
        if (expired && read_stat(victim, victims) && victims.state != 'Z' && victims.state != 'X') ++stage->doubles;
        inside(*stage);
        lock.release({});
    });
    if (victim > 0) {
        ::kill(victim, SIGKILL);
        int status = 0;
        ::waitpid(victim, &status, 0);
    }
    const bool two = stage->doubles > 0;
    granted += stage->granted > 0 ? 1 : 0;
    ::munmap(stage, sizeof(Stage));
    return two;
}

// --- strangers ------------------------------------------------------------------------------------------------

// A child with a pid of our choice; -1: not permitted. It notes any signal that it gets.
pid_t stranger(Stage &stage, pid_t pid) {
    static Stage *noted = nullptr;
    noted = &stage;
    clone_args args = {};
    args.exit_signal = SIGCHLD;
    args.set_tid = reinterpret_cast<std::uintptr_t>(&pid);
    args.set_tid_size = 1;
    const long got = ::syscall(SYS_clone3, &args, sizeof args);
    if (got != 0) return static_cast<pid_t>(got);
    for (const int number : {SIGINT, SIGTERM, SIGCONT, SIGHUP}) ::signal(number, [](int) { noted->signalled = true; });
    stage.held = true;
    for (;;) ::pause();
}

// The owner died, its child still has the lock, and a stranger has the owner's pid. -1: not possible here, else
// whether the stranger was signalled.
int stranger_round(const std::string &directory, bool paper) {
    Stage *stage = common<Stage>();
    const pid_t owner = start([&] {
        AdaptiveLock lock;
        if (!paper && AdaptiveLock::get(this_world(), request_for(directory), lock).denied != Denied::no) ::_exit(1);
        stage->victim = start([] {
            for (;;) ::pause();
        });  // the copy of the descriptor keeps the lock
        stage->held = true;
        ::_exit(0);  // no destructor: it dies without a word
    });
    finish(owner);
    if (paper) PaperLock(directory, "atom").leave_expired(owner);
    stage->held = false;
    const pid_t innocent = stranger(*stage, owner);
    if (innocent > 0) spin_until([&] { return stage->held.load(); });
    if (innocent > 0 && paper) {
        PaperLock lock(directory, "atom");
        if (lock.get(0, 90)) lock.release();
    } else if (innocent > 0) {
        const Later later;
        AdaptiveLock lock;
        (void)AdaptiveLock::get(later, request_for(directory), lock);
    }
    ::kill(stage->victim, SIGKILL);
    int result = -1, status = 0;
    if (innocent > 0) {
        bool gone = false;
        for (int i = 0; i < 20 && !gone; ++i) {  // a signal takes its time
            sleep_ns(1'000'000);
            gone = ::waitpid(innocent, &status, WNOHANG) == innocent;
        }
        result = gone || stage->signalled ? 1 : 0;
        if (!gone) ::kill(innocent, SIGKILL);
        if (!gone) ::waitpid(innocent, &status, 0);
    }
    ::munmap(stage, sizeof(Stage));
    return result;
}

// --- survivors ------------------------------------------------------------------------------------------------

const char tree_script[] =
    "trap '' INT TERM; sleep 1000 & setsid sleep 1001 & (setsid sh -c 'sleep 1002 & exec sleep "
    "1003' &) ; echo up > \"$1\"; while :; do sleep 1004; done";

int left_of(const std::string &mark) {
    int left = 0;
    for (const ProcessStat &process : all_processes()) {
        if (process.state == 'Z' || !has_variable(environment_of(process.pid), mark)) continue;
        ++left;
        ::kill(process.pid, SIGKILL);  // ours: it has this run's mark
    }
    return left;
}

void wait_for_file(const std::string &path) {
    while (::access(path.c_str(), F_OK) != 0) sleep_ns(2'000'000);
    sleep_ns(20'000'000);  // the last ones of the tree are on their way
}

int survivors_of_paper(const std::string &directory, const std::string &mark) {
    const std::string up = directory + "/up";
    const pid_t leader = start([&] {
        ::setsid();
        ::putenv(const_cast<char *>(mark.c_str()));
        ::execl("/bin/sh", "sh", "-c", tree_script, "sh", up.c_str(), nullptr);
        ::_exit(1);
    });
    wait_for_file(up);
    PaperLock lock(directory, "atom");
    lock.leave_expired(leader);
    if (lock.get(0, 90)) lock.release();
    int status = 0;
    ::waitpid(leader, &status, 0);
    return left_of(mark);
}

int survivors_of_ours(const std::string &directory, const std::string &mark, bool &taken) {
    const std::string up = directory + "/up";
    const pid_t supervisor = start([&] {
        ::setsid();
        ::putenv(const_cast<char *>(mark.c_str()));
        AdaptiveLock lock;
        LockRequest request = request_for(directory);
        if (AdaptiveLock::get(this_world(), request, lock).denied != Denied::no) ::_exit(1);
        Supervision what;
        what.argv = {"/bin/sh", "-c", tree_script, "sh", up};
        what.lock_fds = {lock.fd()};
        what.grace = request.grace;
        what.environment = {text("DCS_LOCK_ID=%016llx", static_cast<unsigned long long>(lock.cookie()))};
        what.started = [&](const Owner &owner) { lock.set_owner(owner); };
        const RunEnd end = supervise(this_world(), what);
        AdaptiveLock::End how;
        how.outcome = end.outcome;
        lock.release(how);
        ::_exit(0);
    });
    wait_for_file(up);
    const Later later;
    AdaptiveLock lock;
    taken = AdaptiveLock::get(later, request_for(directory), lock).denied == Denied::no;
    const int left = left_of(mark);
    int status = 0;
    ::waitpid(supervisor, &status, 0);
    return left;
}

struct Counts {
    int rounds = 0, free_doubles = 0, expired_doubles = 0, strangers = 0, strangers_tried = 0, survivors = 0;
};

void print(const char *name, const Counts &c) {
    std::printf(
        "  %-18s two holders in %4.1f %% of %d rounds when free, %4.1f %% when expired; strangers signalled "
        "%d of %d; survivors of 6: %d\n",
        name, 100.0 * c.free_doubles / c.rounds, c.rounds, 100.0 * c.expired_doubles / c.rounds, c.strangers,
        c.strangers_tried, c.survivors);
}

}  // namespace

void expiry(Bench &bench) {
    Counts paper, ours;
    int granted = 0;
    paper.rounds = ours.rounds = bench.times(300);
    for (int i = 0; i < paper.rounds; ++i) {
        const std::string directory = bench.folder("expiry");
        paper.free_doubles += paper_round(directory, false) ? 1 : 0;
        paper.expired_doubles += paper_round(directory, true) ? 1 : 0;
        ours.free_doubles += our_round(directory, false, granted) ? 1 : 0;
        ours.expired_doubles += our_round(directory, true, granted) ? 1 : 0;
    }
    for (int i = 0; i < bench.times(50); ++i) {
        for (Counts *who : {&paper, &ours}) {
            const int hit = stranger_round(bench.folder("stranger"), who == &paper);
            if (hit < 0) continue;
            ++who->strangers_tried;
            who->strangers += hit;
        }
    }
    const std::string mark = "DCS_PERF_LOCKS=" + std::to_string(::getpid());
    bool taken = false;
    paper.survivors = survivors_of_paper(bench.folder("tree"), mark + "p");
    ours.survivors = survivors_of_ours(bench.folder("tree"), mark + "o", taken);
    std::printf("\nExpiry, %d requesters at once (%s)\n", requesters,
                taken && granted == 2 * ours.rounds ? "the expired lock was taken over in every round"
                                                    : "NOT EVERY EXPIRED LOCK WAS TAKEN OVER");
    print("protocol of 1997", paper);
    print("adaptive lock", ours);
    bench.goal({"double holders at expiry, wrong kills, survivors", "0, 0, 0",
                text("%d, %d of %d, %d; the protocol of 1997: %d of %d rounds, %d of %d, %d", ours.expired_doubles,
                     ours.strangers, ours.strangers_tried, ours.survivors, paper.expired_doubles, paper.rounds,
                     paper.strangers, paper.strangers_tried, paper.survivors),
                ours.free_doubles + ours.expired_doubles + ours.strangers + ours.survivors == 0,
                "see the table above"});
}

}  // namespace dcs::locks::perf
