#include "arena.h"

#include <algorithm>
#include <csignal>
#include <ctime>
#include <new>
#include <vector>

#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include "process/table.h"

namespace storm {
namespace {

struct Seen {
    const Occupant *occupant;
    std::uint32_t grant, beat;
    pid_t pid;
};

bool dead(const Seen &seen, std::uint64_t born) {
    dcs::ProcessStat stat;
    return !dcs::read_stat(seen.pid, stat) || stat.start_time != born || stat.state == 'Z' || stat.state == 'X';
}

// Waits until it is certain, or the storm is gone. The pid is read last: what the place shows before is this process's,
// and not the next one's, which is inside by right if both share the lock. The looker beats too: the process that it
// looks at may be looking at it.
bool runs_inside(const Arena &arena, Occupant &self, const Seen &seen) {
    const std::uint64_t born = seen.occupant->born;
    bool over = false;
    for (int i = 0;; ++i) {
        const std::uint32_t grant = seen.occupant->grant, beat = seen.occupant->beat;
        if (seen.occupant->pid != seen.pid) return false;  // buried
        if (grant != seen.grant) return true;              // it left by itself, so it was alive
        if (beat != seen.beat) return true;
        if (over || ::kill(arena.keeper, 0) != 0) return false;
        over = dead(seen, born);
        ++self.beat;
        if (over || i < 20) ::sched_yield();
        else sleep_ns(200'000);
    }
}

// Those in `area` who were inside together at one moment since our grant, as far as they are alive.
int others_inside(const Arena &arena, Occupant &self, int place, bool exclusive_only, std::string &who) {
    const int area = 1 << place;
    std::vector<Seen> seen;
    const int used = arena.used;
    for (int i = 0; i < used; ++i) {
        const Occupant &other = arena.occupants[i];
        if (&other == &self) continue;
        const Seen now{&other, other.grant, other.beat, other.pid};
        if (now.grant % 2 == 0 || now.pid == 0 || (other.area & area) == 0) continue;
        if (exclusive_only && other.shared) continue;
        if (other.grant == now.grant) seen.push_back(now);
    }
    std::erase_if(seen, [](const Seen &s) { return s.occupant->grant != s.grant || s.occupant->pid != s.pid; });
    int alive = 0;
    if (static_cast<int>(seen.size()) < arena.limits[place]) return 0;
    for (const Seen &s : seen) {
        if (!runs_inside(arena, self, s)) continue;
        ++alive;
        who += " " + std::to_string(s.pid) + (s.occupant->shared ? " shared" : "");
    }
    return alive;
}

}  // namespace

std::int64_t now_ns() {
    timespec t = {};
    ::clock_gettime(CLOCK_MONOTONIC, &t);
    return std::int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
}

void sleep_ns(std::int64_t nanoseconds) {
    timespec t = {nanoseconds / 1'000'000'000, nanoseconds % 1'000'000'000};
    ::nanosleep(&t, nullptr);
}

Arena *map_arena(const std::string &path, bool make) {
    const int fd = ::open(path.c_str(), make ? O_RDWR | O_CREAT | O_CLOEXEC : O_RDWR | O_CLOEXEC, 0600);
    if (fd < 0 || (make && ::ftruncate(fd, sizeof(Arena)) != 0)) return nullptr;
    void *memory = ::mmap(nullptr, sizeof(Arena), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    ::close(fd);
    if (memory == MAP_FAILED) return nullptr;
    if (!make) return static_cast<Arena *>(memory);
    Arena *arena = new (memory) Arena();
    arena->keeper = ::getpid();
    return arena;
}

bool goes_on(const Arena &arena) { return !arena.over && ::kill(arena.keeper, 0) == 0; }

void tell(Arena &arena, const std::string &text) {
    if (arena.told.exchange(true)) return;
    std::snprintf(arena.text, sizeof arena.text, "%s", text.c_str());
}

void settle(Occupant &self) {
    dcs::ProcessStat stat;
    dcs::read_stat(::getpid(), stat);
    self.born = stat.start_time;
    self.pid = ::getpid();
}

void enter(Arena &, Occupant &self, int area, bool shared) {
    self.area = area;
    self.shared = shared;
    ++self.beat;
    ++self.grant;
}

void look_around(Arena &arena, Occupant &self) {
    for (int place = 0; place < areas_max; ++place) {
        if ((self.area & 1 << place) == 0) continue;
        std::string who;
        const int limit = arena.limits[place];
        const int others = others_inside(arena, self, place, self.shared, who);
        if (others < limit) continue;
        ++arena.doubles;
        tell(arena, "process " + std::to_string(::getpid()) + (self.shared ? " shared" : "") + " was granted lock " +
                        std::to_string(place) + " for " + std::to_string(limit) + " while these ran inside:" + who);
    }
}

void leave(Occupant &self) { ++self.grant; }

void beat_for(Occupant &self, std::int64_t nanoseconds) {
    const std::int64_t until = now_ns() + nanoseconds;
    do ++self.beat;
    while (now_ns() < until);
}

void bury(Occupant &occupant) {
    occupant.pid = 0;
    occupant.hangs = false;
    if (occupant.grant % 2 == 1) ++occupant.grant;
}

}  // namespace storm
