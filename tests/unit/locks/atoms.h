#pragma once
// Requests for atoms in a directory of the test, and processes that hold them.
#include <functional>
#include <string>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <vector>

#include "locks/adaptive_lock.h"
#include "scratch.h"
#include "stepped_world.h"

namespace scratch {

inline dcs::locks::Place atom_in(const Directory &dir, const std::string &name = "lock") {
    dcs::locks::Place place;
    place.path = dir / (name + ".lock");
    place.directory = dir.path();
    place.atom = dcs::locks::Atom{"test", name, "dax"};
    return place;
}

inline dcs::locks::LockRequest request_for(const Directory &dir, std::int64_t if_elapsed = 0,
                                           std::int64_t expire_after = dcs::locks::no_limit) {
    dcs::locks::LockRequest request;
    request.place = atom_in(dir);
    request.if_elapsed = if_elapsed;
    request.expire_after = expire_after;
    return request;
}

inline dcs::locks::Answer get(const dcs::locks::World &world, const dcs::locks::LockRequest &request,
                              dcs::locks::AdaptiveLock &lock) {
    return dcs::locks::AdaptiveLock::get(world, request, lock);
}

inline dcs::locks::Record record_of(const Directory &dir) {
    auto state = dcs::locks::look_at(dcs::locks::this_world(), atom_in(dir));
    return state ? state->record : dcs::locks::Record{};
}

// A test that fails leaves no processes that wait for ever.
inline void end_with_test() { ::prctl(PR_SET_PDEATHSIG, SIGKILL); }

// A process that takes the lock and sleeps with it until it is killed; -1 if it was refused.
inline pid_t holder(const dcs::locks::World &world, const dcs::locks::LockRequest &request) {
    return sleeper([&] {
        end_with_test();
        ::signal(SIGINT, SIG_DFL);  // the test framework has handlers that print
        ::signal(SIGTERM, SIG_DFL);
        static dcs::locks::AdaptiveLock lock;
        return dcs::locks::AdaptiveLock::get(world, request, lock).denied == dcs::locks::Denied::no;
    });
}

inline bool alive(pid_t pid) {
    int status = 0;
    return ::waitpid(pid, &status, WNOHANG) == 0;
}

inline std::vector<dcs::locks::LogLine> events(const Directory &dir, const std::string &event) {
    std::vector<dcs::locks::LogLine> lines;
    dcs::locks::read_log(dir.path(), [&](const dcs::locks::LogLine &line) {
        if (line.event == event) lines.push_back(line);
    });
    return lines;
}

// Memory that forked processes share.
template <class T> class SharedMemory {
public:
    SharedMemory() {
        void *memory = ::mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        value_ = memory == MAP_FAILED ? nullptr : new (memory) T{};
    }
    SharedMemory(const SharedMemory &) = delete;
    ~SharedMemory() { ::munmap(value_, sizeof(T)); }
    T *operator->() const { return value_; }

private:
    T *value_ = nullptr;
};

// Lets `count` processes run body(number) at one moment, and waits for them; false if one did not exit with 0.
inline bool at_once(int count, const std::function<void(int)> &body) {
    int start[2];
    if (::pipe(start) != 0) return false;
    std::vector<pid_t> pids;
    for (int i = 0; i < count; ++i) {
        pids.push_back(::fork());
        if (pids.back() != 0) continue;
        char byte;
        ::close(start[1]);
        end_with_test();
        if (::read(start[0], &byte, 1) != 0) ::_exit(9);
        body(i);
        ::_exit(0);
    }
    ::close(start[0]);
    ::close(start[1]);
    bool good = true;
    for (const pid_t pid : pids) {
        int status = -1;
        ::waitpid(pid, &status, 0);
        good = good && exit_code(status) == 0;
    }
    return good;
}

}  // namespace scratch
