#pragma once
// For work on millions of small things, such as the start of a scheduler that has many grains.
#include <cstddef>
#include <functional>
#include <span>

namespace dcs {

// part(0) to part(count - 1), each once, on as many threads as there are cores, four at most; returns when all are
// done. For work on memory whose parts do not touch each other, so that its result is the same on one core. Before part
// i, make(i) is called, on this thread and in order: the parts before are done meanwhile. If it says no, neither part i
// nor a later one is done.
void in_parts(std::size_t count, const std::function<bool(std::size_t)> &make,
              const std::function<void(std::size_t)> &part);
inline void in_parts(std::size_t count, const std::function<void(std::size_t)> &part) {
    in_parts(
        count, [](std::size_t) { return true; }, part);
}

// As long as it lives malloc takes memory from the kernel in large steps. In small ones the threads that make small
// things wait for each other.
class LargeSteps {
public:
    LargeSteps();
    ~LargeSteps();
    LargeSteps(const LargeSteps &) = delete;
    LargeSteps &operator=(const LargeSteps &) = delete;
};

// Memory that comes from the kernel. `page`: a good size for pieces of something that grows.
class LargeMemory {
public:
    static constexpr std::size_t page = 2u << 20;
    explicit LargeMemory(std::size_t size);
    LargeMemory(LargeMemory &&other) noexcept;
    LargeMemory(const LargeMemory &) = delete;
    LargeMemory &operator=(const LargeMemory &) = delete;
    ~LargeMemory();
    std::span<char> bytes() const { return bytes_; }
    // A part of which all is used now: the kernel maps and clears it in one call, not page by page as each is touched.
    std::span<char> mapped(std::size_t from, std::size_t size) const;

private:
    std::span<char> bytes_;
};

}  // namespace dcs
