#pragma once
// Memory that all processes of a storm share, and the detector in it. A process that is granted a lock enters, and
// checks whether a process is inside that must not be. A killed process is still entered when the kernel gives its lock
// to the next one, and its state in /proc shows that late: only one that goes on *running* inside is a second holder.
// So each process inside counts a beat, and the checker waits until the beat goes on or the process is dead.
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <string>

#include <sys/types.h>

namespace storm {

constexpr int occupants_max = 65536, areas_max = 4;

struct Occupant {
    std::atomic<pid_t> pid{0};            // 0: no process
    std::atomic<std::uint64_t> born{0};   // its start time: the pid may be another process's by now
    std::atomic<std::uint32_t> grant{0};  // odd: inside
    std::atomic<std::uint32_t> beat{0};
    std::atomic<int> area{0};  // bits: the locks that it has
    std::atomic<bool> shared{false};
    std::atomic<bool> hangs{false};  // stays inside until a process ends it
};

struct Arena {
    std::atomic<bool> over{false};
    std::atomic<pid_t> keeper{0};  // of the storm; without it nothing of a storm goes on
    std::atomic<int> acquisitions{0}, wanted{0}, used{0};
    std::atomic<int> limits[areas_max];  // how many may be inside each area; 1: a plain lock
    std::atomic<int> doubles{0}, bad_tokens{0}, signalled{0}, failures{0};
    std::atomic<int> expired{0}, takeovers{0}, crashes{0}, refusals{0};
    std::atomic<std::uint64_t> last_token{0};
    std::atomic<bool> told{false};
    char text[400];  // the first thing that went wrong
    Occupant occupants[occupants_max];
};

// Of a file, so that commands can attach to it; nullptr: it cannot be mapped.
Arena *map_arena(const std::string &path, bool make);

void tell(Arena &arena, const std::string &text);
// A place in the arena for this process.
void settle(Occupant &self);
void enter(Arena &arena, Occupant &self, int area, bool shared);
// Counts what it finds in `doubles`.
void look_around(Arena &arena, Occupant &self);
void leave(Occupant &self);
void beat_for(Occupant &self, std::int64_t nanoseconds);
// Its process is reaped: no process is here any more.
void bury(Occupant &occupant);

// The round goes on.
bool goes_on(const Arena &arena);

std::int64_t now_ns();
void sleep_ns(std::int64_t nanoseconds);

}  // namespace storm
