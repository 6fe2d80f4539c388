#pragma once
#include <cstddef>
#include <span>

namespace dcs {

// At the start of a program that passes on files and frames: malloc keeps the memory of their buffers for the next
// ones. Otherwise it gives each back to the kernel, which clears it, page by page, for the next one.
void keep_buffers();

// As long as it lives malloc takes memory from the kernel in large steps: for a start that makes millions of small
// things, on several threads, each of which otherwise waits for the steps of the others.
class LargeSteps {
public:
    LargeSteps();
    ~LargeSteps();
    LargeSteps(const LargeSteps &) = delete;
    LargeSteps &operator=(const LargeSteps &) = delete;
};

// Memory in large pages, where the kernel has them: it clears and maps one of 2 MiB in a small part of the time that
// 512 small ones take. Beyond `size` up to whole large pages nothing is taken before it is used.
class LargeMemory {
public:
    static constexpr std::size_t page = 2u << 20;
    explicit LargeMemory(std::size_t size);  // not cleared by more than the kernel does
    LargeMemory(LargeMemory &&other) noexcept;
    LargeMemory(const LargeMemory &) = delete;
    LargeMemory &operator=(const LargeMemory &) = delete;
    ~LargeMemory();
    std::span<char> bytes() const { return bytes_; }

private:
    std::span<char> bytes_;
};

}  // namespace dcs
