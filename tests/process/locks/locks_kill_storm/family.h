#pragma once
// The ways to lock that a storm tries: what a worker does to be inside, and how it leaves.
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "arena.h"

namespace storm {

using Random = std::mt19937_64;

inline int pick(Random &random, int n) { return static_cast<int>(random() % static_cast<std::uint64_t>(n)); }

class Family {
public:
    virtual ~Family() = default;
    // Returns with the lock, or false if it was refused; who fails for another reason tells the arena.
    virtual bool acquire(Arena &arena, Random &random) = 0;
    virtual void release() = 0;
    int area = 1;
    bool shared = false;
    bool hangs = false;  // some holders never leave by themselves; others end them
};

struct FamilyKind {
    const char *name;
    int limits[areas_max];
    std::unique_ptr<Family> (*make)(const std::string &directory);
};
const std::vector<FamilyKind> &families();

}  // namespace storm
