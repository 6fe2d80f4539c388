#pragma once
// How much a grain keeps in its room: counted bit by bit, so that a look never takes long however many files
// there are. Blocks on disk, and something for every name. What is open but has no name is not seen.
#include <cstdint>
#include <string>
#include <vector>

#include "base/files.h"

namespace dcs::launcher {

class DiskUse {
public:
    // Looks at `names` more names at most, and returns the bytes found so far in this round.
    std::int64_t look(int room, int names);
    bool resting() const { return open_.empty(); }  // between two rounds

private:
    struct Level { Fd fd; std::vector<std::string> left; };
    bool enter(Fd fd);
    std::vector<Level> open_;
    std::int64_t sum_ = 0;
};

}  // namespace dcs::launcher
