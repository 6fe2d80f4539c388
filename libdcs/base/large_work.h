#pragma once
// For work on millions of small things, such as the start of a scheduler that has many grains.
#include <cstddef>
#include <functional>
#include <span>

namespace dcs {

// part(0) to part(count - 1), each once, on as many threads as there are cores, four at most; returns when all are
// done. For work on memory whose parts do not touch each other, so that its result is the same on one core.
void in_parts(std::size_t count, const std::function<void(std::size_t)> &part);

// As long as it lives malloc takes memory from the kernel in large steps. In small ones the threads that make small
// things wait for each other.
class LargeSteps {
public:
    LargeSteps();
    ~LargeSteps();
    LargeSteps(const LargeSteps &) = delete;
    LargeSteps &operator=(const LargeSteps &) = delete;
};

// Memory of which all is soon used: the kernel maps and clears it in one call, not page by page as each is touched.
// `page`: a good size for pieces of something that grows.
class LargeMemory {
public:
    static constexpr std::size_t page = 2u << 20;
    explicit LargeMemory(std::size_t size);
    LargeMemory(LargeMemory &&other) noexcept;
    LargeMemory(const LargeMemory &) = delete;
    LargeMemory &operator=(const LargeMemory &) = delete;
    ~LargeMemory();
    std::span<char> bytes() const { return bytes_; }

private:
    std::span<char> bytes_;
};

}  // namespace dcs
