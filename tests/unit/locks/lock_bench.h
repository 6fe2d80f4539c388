#pragma once
// What tests of queues and slots share.
#include <ctime>
#include <fcntl.h>
#include <string>
#include <sys/stat.h>
#include <unistd.h>

#include "locks/files/lock_file.h"
#include "process/table.h"
#include "scratch.h"
#include "support/catch.h"

namespace lock_bench {

inline dcs::locks::Place place_in(const scratch::Directory &dir, const std::string &name) {
    dcs::locks::Place place;
    place.path = dir / name;
    place.atom = dcs::locks::Atom{name, "", "here"};
    return place;
}

inline std::int64_t boot_now() {
    timespec t = {};
    ::clock_gettime(CLOCK_BOOTTIME, &t);
    return std::int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
}
inline dcs::locks::Deadline in_ms(std::int64_t ms) { return {boot_now() + ms * 1'000'000}; }

// Waits for what must come; a machine may be slow.
template <class Condition> bool soon(Condition condition) {
    for (int i = 0; i < 60'000; ++i) {
        if (condition()) return true;
        ::usleep(1000);
    }
    return false;
}

inline char state_of(pid_t pid) {
    dcs::ProcessStat stat;
    return dcs::read_stat(pid, stat) ? stat.state : '-';
}

inline std::string file_text(const std::string &path) {
    std::string text;
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    char part[4096];
    for (ssize_t n; fd >= 0 && (n = ::read(fd, part, sizeof part)) > 0;) text.append(part, static_cast<std::size_t>(n));
    if (fd >= 0) ::close(fd);
    return text;
}

inline long switches_of(pid_t pid) {
    const std::string text = file_text("/proc/" + std::to_string(pid) + "/status"), name = "\nvoluntary_ctxt_switches:";
    const std::size_t at = text.find(name);
    return at == std::string::npos ? -1 : std::atol(text.c_str() + at + name.size());
}

// A process that does one thing and ends; true in answer(): it did.
struct Child {
    pid_t pid = -1;
    template <class Body> explicit Child(Body body) : pid(::fork()) {
        if (pid == 0) ::_exit(body() ? 0 : 1);
    }
    Child(const Child &) = delete;
    ~Child() {
        if (pid > 0) scratch::end(pid);
    }
    bool answer() {
        int status = -1;
        ::waitpid(pid, &status, 0);
        pid = -1;
        return scratch::exit_code(status) == 0;
    }
    bool sleeps() const {
        return soon([this] {
            const long before = switches_of(pid);
            if (state_of(pid) != 'S') return false;
            ::usleep(10'000);
            return state_of(pid) == 'S' && switches_of(pid) == before;  // not for a moment, on its way
        });
    }
    bool ended() const { return state_of(pid) == 'Z'; }
};

}  // namespace lock_bench
