#pragma once
// The disk space of a grain's room, counted in small portions, so that a look is short however many files
// there are. Counts blocks on disk, and a constant for every name.
#include <cstdint>
#include <string>
#include <vector>

#include <sys/types.h>

#include "base/files.h"

namespace dcs::starter {

class DiskUse {
public:
    // Examines at most `names` more names, and returns the bytes found so far in this round.
    std::int64_t look(int room, int names);
    bool resting() const { return open_.empty(); }  // between two rounds
    bool too_deep() const { return too_deep_; }     // there are directories below depth_max, which no round counts
    static constexpr std::size_t depth_max = 64;    // open descriptors

    struct Nameless {
        std::int64_t bytes = 0;
        bool too_many = false;  // there are more places than were to be examined
    };
    // The bytes of files on the disk of `room` that have no name any more and are open or mapped in one of the
    // processes; examines at most that many places. Files within messages of sockets are not seen.
    static Nameless nameless(int room, const std::vector<pid_t> &processes, int places);
    static constexpr int places_max = 200'000;

private:
    struct Level {
        Fd fd;
        std::vector<std::string> left;  // of those that were read
        bool all = false;               // were read
    };
    std::vector<Level> open_;
    std::int64_t sum_ = 0;
    bool too_deep_ = false;
};

}  // namespace dcs::starter
