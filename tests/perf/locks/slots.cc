// Counted slots: what taking one costs with many live, and how soon a free one is used again.
#include <cerrno>
#include <fcntl.h>
#include <signal.h>
#include <sys/ipc.h>
#include <sys/resource.h>
#include <sys/sem.h>

#include "bench.h"
#include "locks/counted_slots.h"

namespace dcs::locks::perf {
namespace {

// --- N live ---------------------------------------------------------------------------------------------------

constexpr int per_child = 2500;  // two descriptors for each slot, and the usual limit is 20,000

// exectimes: byte locks behind a counter of eight bytes; who wants one asks for every byte up to the counter.
class ExecTimes {
public:
    explicit ExecTimes(const std::string &path) : fd_(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)) {
        if (fd_ < 0) die("cannot open " + path);
    }
    void take_byte(std::int64_t index) { lock(F_OFD_SETLK, F_WRLCK, index + header, 1); }
    // The scan of the printed program; takes and frees a slot.
    void once() {
        lock(F_OFD_SETLKW, F_WRLCK, 0, header);
        std::uint64_t count = 0;
        if (::pread(fd_, &count, sizeof count, 0) < 0) die("read");
        std::int64_t free_byte = -1;
        for (std::int64_t i = 0; i <= static_cast<std::int64_t>(count); ++i)
            if (lock(F_OFD_GETLK, F_WRLCK, i + header, 1) == F_UNLCK && free_byte < 0) free_byte = i;
        lock(F_OFD_SETLK, F_WRLCK, free_byte + header, 1);
        lock(F_OFD_SETLK, F_UNLCK, 0, header);
        lock(F_OFD_SETLK, F_UNLCK, free_byte + header, 1);
    }
    void write_count(std::uint64_t count) {
        if (::pwrite(fd_, &count, sizeof count, 0) != sizeof count) die("write");
    }

private:
    static constexpr std::int64_t header = 8;
    short lock(int what, short type, std::int64_t at, std::int64_t length) {
        struct flock range = {};
        range.l_type = type;
        range.l_whence = SEEK_SET;
        range.l_start = at;
        range.l_len = length;
        if (::fcntl(fd_, what, &range) != 0) die("fcntl");
        return range.l_type;
    }
    int fd_;
};

struct Crowd {
    std::atomic<int> ready{0};
    std::atomic<bool> over{false};
};

// `live` slots of both kinds, held by children.
std::vector<pid_t> occupy(Crowd &crowd, const SlotWish &wish, const std::string &exectimes, int live) {
    std::vector<pid_t> children;
    for (int first = 0; first < live; first += per_child) {
        const int mine = std::min(per_child, live - first);
        children.push_back(start([&] {
            std::vector<Slots> slots;
            std::vector<std::unique_ptr<ExecTimes>> bytes;
            for (int i = 0; i < mine; ++i) {
                slots.push_back(must(Slots::take(this_world(), {wish}, Deadline::none(), "live"), "a slot"));
                bytes.push_back(std::make_unique<ExecTimes>(exectimes));
                bytes.back()->take_byte(first + i);
            }
            ++crowd.ready;
            while (!crowd.over) sleep_ns(2'000'000);
        }));
        spin_until([&] { return crowd.ready == static_cast<int>(children.size()); });
    }
    return children;
}

// Rounds so short that most of them are not interrupted.
double per_call(int round_count, int times, const std::function<void()> &once) {
    once();
    std::vector<double> rounds;
    for (int round = 0; round < round_count; ++round) {
        const std::int64_t begin = now_ns();
        for (int i = 0; i < times; ++i) once();
        rounds.push_back(static_cast<double>(now_ns() - begin) / times / 1000);
    }
    return median(rounds);
}

void many_live(Bench &bench, bool quick) {
    std::printf("\nTaking and freeing a slot, by how many are live\n  %6s %14s %28s\n", "live", "Slots us",
                "exectimes: counter, scan us");
    for (const int live : {0, 100, 1000, 10'000}) {
        if (quick && live > 1000) break;
        const std::string directory = bench.folder("slots");
        const SlotWish wish{place_at(directory, "n", ".slots"), live + 1};
        ExecTimes exectimes(directory + "/exectimes");
        exectimes.write_count(static_cast<std::uint64_t>(live));
        Crowd *crowd = common<Crowd>();
        const std::vector<pid_t> children = occupy(*crowd, wish, directory + "/exectimes", live);
        const double ours = per_call(bench.times(100), 20, [&] {
            Slots slots = must(Slots::take(this_world(), {wish}, Deadline::none(), "one more"), "a slot");
            slots.release();
        });
        const double theirs = per_call(live >= 1000 ? 5 : 100, live >= 100 ? 1 : 20, [&] { exectimes.once(); });
        std::printf("  %6d %14.1f %28.1f\n", live, ours, theirs);
        std::fflush(stdout);
        figure("slot, take and free, " + std::to_string(live) + " live: of the scan of exectimes", ours, theirs, "us");
        crowd->over = true;
        for (const pid_t child : children) finish(child);
        if (live == 10'000)
            bench.goal({"slot take at 10,000 live", "<= 10 us", text("%.1f us, 002's scan %.0f us", ours, theirs),
                        ours <= 10, "a take opens two files, reads a hint for each slot and writes a holder's name"});
    }
}

// --- waiting for one of four ----------------------------------------------------------------------------------

constexpr int limit = 4, workers = 16;
constexpr std::int64_t hold_ns = 2'000'000;

struct Floor {
    std::atomic<bool> go{false}, over{false};
    std::atomic<int> ready{0}, inside{0}, over_limit{0};
    std::atomic<std::int64_t> released{0}, busy_ns{0};
    std::atomic<std::int64_t> since[workers];  // held since; 0: not held
    std::atomic<int> samples{0};
    float latency[100'000];
};

class Turnstile {
public:
    virtual ~Turnstile() = default;
    virtual void enter() = 0;
    virtual void leave() = 0;
};
using MakeTurnstile = std::function<std::unique_ptr<Turnstile>(const std::string &)>;

class Counted final : public Turnstile {
public:
    Counted(const std::string &directory, bool polls)
        : wish_{place_at(directory, "n", ".slots"), limit}, polls_(polls) {}
    void enter() override {
        while (polls_) {
            Result<Slots> got = Slots::take(this_world(), {wish_}, Deadline::none(), "worker");
            if (got) {
                slots_ = std::move(*got);
                return;
            }
            sleep_ns(100'000'000);
        }
        slots_ = must(Slots::take(this_world(), {wish_}, Deadline::never(), "worker"), "a slot");
    }
    void leave() override { slots_.release(); }

private:
    SlotWish wish_;
    bool polls_;
    Slots slots_;
};

class Semaphore final : public Turnstile {
public:
    explicit Semaphore(int id) : id_(id) {}
    void enter() override { change(-1); }
    void leave() override { change(1); }

private:
    void change(short by) {
        sembuf operation = {0, by, SEM_UNDO};
        if (::semop(id_, &operation, 1) != 0) die("semop");
    }
    int id_;
};

void work(Floor &floor, int self, Turnstile &slots) {
    ++floor.ready;
    spin_until([&] { return floor.go.load(); });
    while (!floor.over) {
        const std::int64_t asked = now_ns();
        slots.enter();
        const std::int64_t now = now_ns(), released = floor.released;
        floor.since[self] = now;
        if (++floor.inside > limit) ++floor.over_limit;
        if (released > asked) {
            const int at = floor.samples++;
            if (at < static_cast<int>(std::size(floor.latency)))
                floor.latency[at] = static_cast<float>(now - released) / 1000;
        }
        sleep_ns(hold_ns);
        --floor.inside;
        floor.busy_ns += now_ns() - now;
        floor.since[self] = 0;
        floor.released = now_ns();
        slots.leave();
    }
}

struct Shift {
    double p50 = 0, p99 = 0, utilisation = 0;
    int over_limit = 0;
};

// Every five milliseconds one of the workers is killed and another one hired.
void kill_one(Floor &floor, std::vector<pid_t> &children, int victim, const std::function<pid_t(int)> &hire) {
    ::kill(children[static_cast<std::size_t>(victim)], SIGKILL);
    int status = 0;
    ::waitpid(children[static_cast<std::size_t>(victim)], &status, 0);
    const std::int64_t since = floor.since[victim].exchange(0);
    if (since != 0) {  // a kill between the two stores of a worker is rare enough not to matter here
        --floor.inside;
        floor.busy_ns += now_ns() - since;
        floor.released = now_ns();
    }
    children[static_cast<std::size_t>(victim)] = hire(victim);
}

Shift shift(const std::string &directory, const MakeTurnstile &make, double seconds, bool kills) {
    Floor *floor = common<Floor>();
    const auto hire = [&](int i) { return start([&] { work(*floor, i, *make(directory)); }); };
    std::vector<pid_t> children;
    for (int i = 0; i < workers; ++i) children.push_back(hire(i));
    spin_until([&] { return floor->ready == workers; });
    const std::int64_t begin = now_ns(), end = begin + static_cast<std::int64_t>(seconds * 1e9);
    floor->go = true;
    for (int i = 0; now_ns() < end; ++i) {
        sleep_ns(kills ? 5'000'000 : 50'000'000);
        if (kills) kill_one(*floor, children, i * 7 % workers, hire);
    }
    const double elapsed = static_cast<double>(now_ns() - begin);
    Shift result;
    result.utilisation = 100 * static_cast<double>(floor->busy_ns) / (limit * elapsed);
    result.over_limit = kills ? 0 : floor->over_limit.load();
    floor->over = true;
    for (const pid_t child : children) finish(child);
    const int samples = std::min<int>(floor->samples, static_cast<int>(std::size(floor->latency)));
    const std::vector<double> latencies(floor->latency, floor->latency + samples);
    result.p50 = median(latencies);
    result.p99 = quantile(latencies, 0.99);
    ::munmap(floor, sizeof(Floor));
    return result;
}

void waiting(Bench &bench) {
    const int semaphore = ::semget(IPC_PRIVATE, 1, 0600);
    union {
        int value;
        void *pointer;
    } value = {limit};
    if (semaphore < 0 || ::semctl(semaphore, 0, SETVAL, value) != 0) die("semget");
    const std::pair<const char *, MakeTurnstile> methods[] = {
        {"polling 100 ms", [](const std::string &d) { return std::make_unique<Counted>(d, true); }},
        {"SysV semaphore", [=](const std::string &) { return std::make_unique<Semaphore>(semaphore); }},
        {"Slots, waiting", [](const std::string &d) { return std::make_unique<Counted>(d, false); }}};
    std::printf(
        "\n%d slots, %d workers, held for 2 ms: from a release to the next start\n"
        "  %-18s %-14s %10s %10s %12s\n",
        limit, workers, "", "", "p50 us", "p99 us", "utilisation");
    std::vector<Shift> ours;
    for (const bool kills : {false, true}) {
        for (const auto &[name, make] : methods) {
            std::vector<double> p50, p99, utilisation;
            int over_limit = 0;
            for (int round = 0; round < 3; ++round) {
                const Shift one = shift(bench.folder("waiting"), make, bench.seconds(1.5), kills);
                p50.push_back(one.p50);
                p99.push_back(one.p99);
                utilisation.push_back(one.utilisation);
                over_limit += one.over_limit;
            }
            std::printf("  %-18s %-14s %10.0f %10.0f %10.0f %%%s\n", name, kills ? "with kills" : "", median(p50),
                        median(p99), median(utilisation), over_limit > 0 ? "  LIMIT EXCEEDED" : "");
            if (std::string(name) == "Slots, waiting")
                ours.push_back({median(p50), median(p99), median(utilisation), over_limit});
        }
    }
    ::semctl(semaphore, 0, IPC_RMID);
    bench.goal(
        {"N-slot release to start, waiting", "<= 50 us, >= 90 % under kills",
         text("%.0f us, %.0f %% under kills (%.0f %% without)", ours[0].p50, ours[1].utilisation, ours[0].utilisation),
         ours[0].p50 <= 50 && ours[1].utilisation >= 90,
         "the head of the queue is woken, looks for the free slot and writes its name; a killed worker is "
         "replaced by a fork, which is time that its slot is used by others only if they are queued"});
}

}  // namespace

void slots(Bench &bench) {
    rlimit files = {};
    if (::getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max;
        ::setrlimit(RLIMIT_NOFILE, &files);
    }
    many_live(bench, bench.times(100) < 40);
    waiting(bench);
}

}  // namespace dcs::locks::perf
