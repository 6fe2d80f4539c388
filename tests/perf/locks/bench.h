#pragma once
// What the parts of the lock benchmark share: clocks, forked processes with common memory, and the table of goals.
#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <functional>
#include <new>
#include <string>
#include <vector>

#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "locks/files/atom.h"
#include "locks/files/lock_file.h"
#include "perf/figures.h"

namespace dcs::locks::perf {

using dcs::perf::figure;

inline std::int64_t now_ns() {
    timespec t = {};
    ::clock_gettime(CLOCK_MONOTONIC, &t);
    return std::int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
}

inline void sleep_ns(std::int64_t ns) {
    timespec t = {ns / 1'000'000'000, ns % 1'000'000'000};
    ::nanosleep(&t, nullptr);
}

[[noreturn]] inline void die(const std::string &why) {
    std::fprintf(stderr, "perf_locks: %s\n", why.c_str());
    std::exit(1);
}

template <class T> T must(Result<T> result, const char *what) {
    if (!result) die(std::string(what) + ": " + result.status().text);
    return std::move(*result);
}

inline double quantile(std::vector<double> values, double q) {
    if (values.empty()) return 0;
    std::sort(values.begin(), values.end());
    return values[std::min(values.size() - 1, static_cast<std::size_t>(q * static_cast<double>(values.size())))];
}
inline double median(std::vector<double> values) { return quantile(std::move(values), 0.5); }

// Memory that forked children have in common with us. Never unmapped: the benchmark ends soon.
template <class T> T *common() {
    void *memory = ::mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) die("no shared memory");
    return new (memory) T();
}

template <class Body> pid_t start(Body body) {
    std::fflush(stdout);
    const pid_t pid = ::fork();
    if (pid < 0) die("fork");
    if (pid != 0) return pid;
    body();
    ::_exit(0);
}

inline void finish(pid_t pid) {
    int status = 0;
    ::waitpid(pid, &status, 0);
    if (WIFEXITED(status) && WEXITSTATUS(status) != 0) die("a child failed");
}

inline void end(pid_t pid) {
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
}

// Waits until `condition`; other processes make it true, and there may be fewer processors than processes.
template <class Condition> void spin_until(Condition condition) {
    while (!condition()) ::sched_yield();
}

inline Place place_at(const std::string &directory, const std::string &name, const char *suffix = ".lock") {
    Place place;
    place.path = directory + "/" + name + suffix;
    place.directory = directory;
    place.atom = Atom{name, "", ""};
    return place;
}

struct Goal {
    std::string what, goal, figure;
    bool met = false;
    std::string cause;  // where it is missed
};

class Bench {
public:
    Bench(std::string directory, double effort) : directory_(std::move(directory)), effort_(effort) {}
    const std::string &directory() const { return directory_; }
    // A fresh directory below it.
    std::string folder(const std::string &name) const {
        const std::string path = directory_ + "/" + name;
        std::filesystem::remove_all(path);
        std::filesystem::create_directories(path);
        return path;
    }
    int times(int full) const { return std::max(2, static_cast<int>(full * effort_)); }
    double seconds(double full) const { return std::max(0.05, full * effort_); }
    void goal(Goal goal) { goals_.push_back(std::move(goal)); }
    const std::vector<Goal> &goals() const { return goals_; }

private:
    std::string directory_;
    double effort_;
    std::vector<Goal> goals_;
};

template <class... Values> std::string text(const char *format, Values... values) {
    char buffer[400];
    std::snprintf(buffer, sizeof buffer, format, values...);
    return buffer;
}

void cost(Bench &bench);       // one acquisition and release, alone
void hand_over(Bench &bench);  // many want one lock
void recovery(Bench &bench);   // SIGKILL of the holder
void slots(Bench &bench);      // counted slots
void command(Bench &bench);    // dcs_lock beside flock(1)
void expiry(Bench &bench);     // double holders, wrong kills, survivors
void learning(Bench &bench);   // the limits of the hourly job

}  // namespace dcs::locks::perf
