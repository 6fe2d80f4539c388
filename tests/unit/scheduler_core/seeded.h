#pragma once
// Numbers that are random enough and the same everywhere (splitmix64).
#include <cstdint>

namespace dcs::core {

class Seeded {
public:
    explicit Seeded(std::uint64_t seed) : x_(seed) {}
    std::uint64_t next() {
        std::uint64_t z = (x_ += 0x9e3779b97f4a7c15u);
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
        return z ^ (z >> 31);
    }
    int below(int n) { return static_cast<int>(next() % static_cast<std::uint64_t>(n)); }
    bool once_in(int n) { return below(n) == 0; }

private:
    std::uint64_t x_;
};

}  // namespace dcs::core
