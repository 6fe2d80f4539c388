// Many processes that want one lock all the time: how long from a release to the next holder, how fair, and in what
// order. Holders hold it for 50 us.
#include <cerrno>
#include <dirent.h>
#include <fcntl.h>
#include <memory>
#include <signal.h>
#include <sys/file.h>
#include <sys/ipc.h>
#include <sys/sem.h>
#include <sys/stat.h>

#include "bench.h"
#include "locks/adaptive_lock.h"
#include "locks/files/queue.h"

namespace dcs::locks::perf {
namespace {

constexpr int processes_max = 64, samples_max = 20'000;
constexpr std::int64_t hold_ns = 50'000;

class Contender {
public:
    virtual ~Contender() = default;
    virtual void acquire() = 0;
    virtual void release() = 0;
};
using Make = std::function<std::unique_ptr<Contender>(const std::string &directory)>;

class Flock final : public Contender {
public:
    explicit Flock(const std::string &directory)
        : fd_(::open((directory + "/flock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)) {}
    void acquire() override {
        if (::flock(fd_, LOCK_EX) != 0) die("flock");
    }
    void release() override { ::flock(fd_, LOCK_UN); }

private:
    int fd_;
};

class Semaphore final : public Contender {
public:
    explicit Semaphore(int id) : id_(id) {}
    void acquire() override { change(-1); }
    void release() override { change(1); }

private:
    void change(short by) {
        sembuf operation = {0, by, SEM_UNDO};
        if (::semop(id_, &operation, 1) != 0) die("semop");
    }
    int id_;
};

// lock.PID files, the oldest one has the lock, equally old ones go by pid; each process looks ten times a second.
class Polling final : public Contender {
public:
    explicit Polling(const std::string &directory)
        : directory_(directory), mine_("lock." + std::to_string(::getpid())) {}
    void acquire() override {
        const int fd = ::open((directory_ + "/" + mine_).c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
        ::close(fd);
        while (!first()) sleep_ns(100'000'000);
    }
    void release() override { ::unlink((directory_ + "/" + mine_).c_str()); }

private:
    bool older(const char *name, const struct stat &mine) const {
        struct stat other = {};
        if (::stat((directory_ + "/" + name).c_str(), &other) != 0) return false;
        if (other.st_ctim.tv_sec != mine.st_ctim.tv_sec) return other.st_ctim.tv_sec < mine.st_ctim.tv_sec;
        if (other.st_ctim.tv_nsec != mine.st_ctim.tv_nsec) return other.st_ctim.tv_nsec < mine.st_ctim.tv_nsec;
        return std::atoi(name + 5) < ::getpid();
    }
    bool first() const {
        struct stat mine = {};
        if (::stat((directory_ + "/" + mine_).c_str(), &mine) != 0) die("my lock file is gone");
        DIR *list = ::opendir(directory_.c_str());
        bool yes = true;
        while (const dirent *entry = ::readdir(list)) {
            const std::string name = entry->d_name;
            if (name.rfind("lock.", 0) == 0 && name != mine_ && older(name.c_str(), mine)) yes = false;
        }
        ::closedir(list);
        return yes;
    }
    std::string directory_, mine_;
};

class Queue final : public Contender {
public:
    explicit Queue(const std::string &directory)
        : file_(must(LockFile::open(place_at(directory, "queue"), FileKind::atom), "open")) {}
    void acquire() override {
        place_ = must(QueuePlace::enter(file_, false), "enter");
        const bool turn = must(place_.wait_for_turn(Deadline::never()), "wait");
        if (!turn || !must(file_.hold(false, Deadline::never()), "hold")) die("the queue gave up");
    }
    void release() override {
        file_.let_go();
        place_.leave();
    }

private:
    LockFile file_;
    QueuePlace place_;
};

class Adaptive final : public Contender {
public:
    explicit Adaptive(const std::string &directory) {
        request_.place = place_at(directory, "adaptive");
        request_.queue = true;
        request_.wait = Deadline::never();
    }
    void acquire() override {
        const Answer answer = AdaptiveLock::get(this_world(), request_, lock_);
        if (answer.denied != Denied::no) die("the adaptive lock gave up: " + answer.text);
    }
    void release() override { lock_.release({}); }

private:
    LockRequest request_;
    AdaptiveLock lock_;
};

struct Arena {
    std::atomic<bool> go{false}, over{false};
    std::atomic<int> ready{0}, inside{0}, doubles{0};
    std::atomic<std::uint64_t> arrivals{0};
    std::atomic<std::uint64_t> waiting[processes_max];  // arrival of who waits; 0: does not
    std::atomic<std::int64_t> released{0};
    std::int64_t granted[processes_max], waited[processes_max], inversions[processes_max], longest[processes_max];
    int samples[processes_max];
    float latency[processes_max][samples_max];  // microseconds
};

void note_grant(Arena &arena, int self, std::uint64_t arrival, std::int64_t asked) {
    const std::int64_t now = now_ns(), released = arena.released;
    if (++arena.inside != 1) ++arena.doubles;
    ++arena.granted[self];
    arena.longest[self] = std::max(arena.longest[self], now - asked);
    if (released <= asked) return;  // it was free
    ++arena.waited[self];
    for (std::atomic<std::uint64_t> &other : arena.waiting) {
        const std::uint64_t theirs = other;
        if (theirs == 0 || theirs >= arrival) continue;
        ++arena.inversions[self];
        break;
    }
    if (arena.samples[self] < samples_max)
        arena.latency[self][arena.samples[self]++] = static_cast<float>(now - released) / 1000;
}

void contend(Arena &arena, int self, Contender &lock) {
    ++arena.ready;
    spin_until([&] { return arena.go.load(); });
    while (!arena.over) {
        const std::uint64_t arrival = ++arena.arrivals;
        const std::int64_t asked = now_ns();
        arena.waiting[self] = arrival;
        lock.acquire();
        arena.waiting[self] = 0;
        note_grant(arena, self, arrival, asked);
        const std::int64_t until = now_ns() + hold_ns;
        while (now_ns() < until) {}
        --arena.inside;
        arena.released = now_ns();
        lock.release();
    }
}

struct Result4 {
    double p50 = 0, p99 = 0, jain = 0, inversions = 0, longest_ms = 0, per_second = 0;
    int doubles = 0;
};

Result4 trial(const std::string &directory, const Make &make, int processes, double seconds) {
    Arena *arena = common<Arena>();
    std::vector<pid_t> children;
    for (int i = 0; i < processes; ++i) children.push_back(start([&] { contend(*arena, i, *make(directory)); }));
    spin_until([&] { return arena->ready == processes; });
    const std::int64_t begin = now_ns();
    arena->go = true;
    sleep_ns(static_cast<std::int64_t>(seconds * 1e9));
    const double elapsed = static_cast<double>(now_ns() - begin) / 1e9;
    double sum = 0, squares = 0, waited = 0, inversions = 0;
    for (int i = 0; i < processes; ++i) {
        const double granted = static_cast<double>(arena->granted[i]);
        sum += granted;
        squares += granted * granted;
        waited += static_cast<double>(arena->waited[i]);
        inversions += static_cast<double>(arena->inversions[i]);
    }
    const int doubles = arena->doubles;  // before any holder is killed, which never says that it left
    arena->over = true;
    sleep_ns(20'000'000);
    for (const pid_t child : children) end(child);  // pollers would need many seconds to come to an end
    Result4 result;
    std::vector<double> latencies;
    for (int i = 0; i < processes; ++i) {
        latencies.insert(latencies.end(), arena->latency[i], arena->latency[i] + arena->samples[i]);
        result.longest_ms = std::max(result.longest_ms, static_cast<double>(arena->longest[i]) / 1e6);
    }
    result.p50 = quantile(latencies, 0.5);
    result.p99 = quantile(latencies, 0.99);
    result.jain = squares > 0 ? sum * sum / (processes * squares) : 0;
    result.inversions = waited > 0 ? 100 * inversions / waited : 0;
    result.per_second = sum / elapsed;
    result.doubles = doubles;
    ::munmap(arena, sizeof(Arena));
    return result;
}

struct Method {
    const char *name;
    Make make;
    std::vector<Result4> at64;
};

double middle(const std::vector<Result4> &trials, double Result4::*field) {
    std::vector<double> values;
    for (const Result4 &one : trials) values.push_back(one.*field);
    return median(values);
}

}  // namespace

void hand_over(Bench &bench) {
    const int semaphore = ::semget(IPC_PRIVATE, 1, 0600);
    union {
        int value;
        void *pointer;
    } one = {1};
    if (semaphore < 0 || ::semctl(semaphore, 0, SETVAL, one) != 0) die("semget");
    Method methods[] = {
        {"001, polling 100 ms", [](const std::string &d) { return std::make_unique<Polling>(d); }, {}},
        {"flock", [](const std::string &d) { return std::make_unique<Flock>(d); }, {}},
        {"SysV semaphore", [=](const std::string &) { return std::make_unique<Semaphore>(semaphore); }, {}},
        {"queue and hold", [](const std::string &d) { return std::make_unique<Queue>(d); }, {}},
        {"adaptive, queued", [](const std::string &d) { return std::make_unique<Adaptive>(d); }, {}},
    };
    std::printf("\nHand-over of one lock under contention, held for 50 us\n  %-22s %4s %10s %10s %7s %11s %10s %8s\n",
                "", "P", "p50 us", "p99 us", "Jain", "inversions", "longest ms", "a second");
    for (const int processes : {2, 8, processes_max}) {
        std::vector<Result4> trials[std::size(methods)];
        for (int round = 0; round < 3; ++round)
            for (std::size_t i = 0; i < std::size(methods); ++i)
                trials[i].push_back(trial(bench.folder("hand_over"), methods[i].make, processes, bench.seconds(1)));
        for (std::size_t i = 0; i < std::size(methods); ++i) {
            int doubles = 0;
            for (const Result4 &one_trial : trials[i]) doubles += one_trial.doubles;
            std::printf("  %-22s %4d %10.1f %10.0f %7.3f %9.1f %% %10.1f %8.0f", methods[i].name, processes,
                        middle(trials[i], &Result4::p50), middle(trials[i], &Result4::p99),
                        middle(trials[i], &Result4::jain), middle(trials[i], &Result4::inversions),
                        middle(trials[i], &Result4::longest_ms), middle(trials[i], &Result4::per_second));
            std::printf(doubles > 0 ? "  %d TIMES TWO HOLDERS\n" : "\n", doubles);
            methods[i].at64 = trials[i];
        }
    }
    ::semctl(semaphore, 0, IPC_RMID);
    const std::vector<Result4> &ours = methods[3].at64, &flocks = methods[1].at64, &shell = methods[0].at64;
    const double p50 = middle(ours, &Result4::p50), jain = middle(ours, &Result4::jain);
    const double inversions = middle(ours, &Result4::inversions);
    figure("lock, hand-over at 64: queue and hold, of flock", p50, middle(flocks, &Result4::p50), "us");
    bench.goal({"FIFO hand-over at 64: p50, Jain, inversions", "<= 10 us, >= .999, <= 1 %",
                text("%.1f us, %.4f, %.2f %%; shell %.0f us, flock %.1f us, %.2f, %.0f %%", p50, jain, inversions,
                     middle(shell, &Result4::p50), middle(flocks, &Result4::p50), middle(flocks, &Result4::jain),
                     middle(flocks, &Result4::inversions)),
                p50 <= 10 && jain >= 0.999 && inversions <= 1,
                "a waiter takes its turn, the bytes before it and the lock itself with flock(2): five calls more than "
                "flock alone; and an arrival is counted before the calls that enter the queue, in which one may lose "
                "the processor"});
}

// --- a holder that is killed ----------------------------------------------------------------------------------

namespace {

struct Grave {
    std::atomic<bool> held{false}, waiting{false}, granted{false};
    std::atomic<std::int64_t> at{0};
};

double one_recovery(const std::string &directory, const Make &make) {
    Grave *grave = common<Grave>();
    const pid_t holder = start([&] {
        const auto lock = make(directory);
        lock->acquire();
        grave->held = true;
        for (;;) ::pause();
    });
    spin_until([&] { return grave->held.load(); });
    const pid_t waiter = start([&] {
        const auto lock = make(directory);
        grave->waiting = true;
        lock->acquire();
        grave->at = now_ns();
        lock->release();
    });
    spin_until([&] { return grave->waiting.load(); });
    sleep_ns(3'000'000);  // until it sleeps in the kernel
    const std::int64_t killed = now_ns();
    ::kill(holder, SIGKILL);
    int status = 0;
    ::waitpid(holder, &status, 0);
    finish(waiter);
    const double microseconds = static_cast<double>(grave->at - killed) / 1000;
    ::munmap(grave, sizeof(Grave));
    return microseconds;
}

}  // namespace

void recovery(Bench &bench) {
    const Make makes[] = {[](const std::string &d) { return std::make_unique<Flock>(d); },
                          [](const std::string &d) { return std::make_unique<Queue>(d); },
                          [](const std::string &d) { return std::make_unique<Adaptive>(d); }};
    const char *names[] = {"flock", "queue and hold", "adaptive, queued"};
    std::vector<double> figures[3];
    const std::string directory = bench.folder("recovery");
    for (int i = 0; i < bench.times(200); ++i)
        for (std::size_t m = 0; m < std::size(makes); ++m) figures[m].push_back(one_recovery(directory, makes[m]));
    std::printf("\nFrom SIGKILL of the holder to the next holder (its exit included)\n");
    for (std::size_t m = 0; m < std::size(makes); ++m)
        std::printf("  %-22s p50 %7.0f us   p99 %7.0f us\n", names[m], median(figures[m]), quantile(figures[m], 0.99));
    bench.goal({"recovery from SIGKILL of the holder", "<= 0.2 ms and the victim's exit",
                text("%.0f us queue, %.0f us adaptive, flock %.0f", median(figures[1]), median(figures[2]),
                     median(figures[0])),
                median(figures[1]) - median(figures[0]) <= 200 && median(figures[2]) - median(figures[0]) <= 200,
                "flock's figure is what the exit takes"});
}

}  // namespace dcs::locks::perf
