#include "base/large_work.h"

#include <algorithm>
#include <atomic>
#include <malloc.h>
#include <new>
#include <sys/mman.h>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace dcs {
namespace {
constexpr std::size_t small_page = 4096;
constexpr int usual_step = 128 << 10;  // malloc's own
// Nearly a whole one of the heaps that threads other than the first have, so that each is made in one step.
constexpr int large_step = (64 << 20) - (1 << 20);

std::size_t whole_pages(std::size_t size) {
    return (size + LargeMemory::page - 1) / LargeMemory::page * LargeMemory::page;
}
}  // namespace

void in_parts(std::size_t count, const std::function<bool(std::size_t)> &make,
              const std::function<void(std::size_t)> &part) {
    constexpr std::size_t most_threads = 4, all = SIZE_MAX;
    std::atomic<std::size_t> next{0}, made{0}, end{count};
    const auto work = [&] {
        for (std::size_t i = next++; i < end; i = next++) {
            for (std::size_t now = made; now <= i; now = made) made.wait(now);
            if (i < end) part(i);
        }
    };
    const std::size_t threads = std::min({count, most_threads, std::size_t{std::thread::hardware_concurrency()}});
    std::vector<std::thread> helpers;
    try {
        while (helpers.size() + 1 < threads) helpers.emplace_back(work);
    } catch (const std::system_error &) {}  // there can be no more threads; this one does their parts
    for (std::size_t i = 0; i < end; ++i) {
        if (!make(i)) end = i;
        made = i + 1 < end ? i + 1 : all;
        made.notify_all();
    }
    work();
    for (std::thread &helper : helpers) helper.join();
}

LargeSteps::LargeSteps() { (void)::mallopt(M_TOP_PAD, large_step); }
LargeSteps::~LargeSteps() { (void)::mallopt(M_TOP_PAD, usual_step); }

LargeMemory::LargeMemory(std::size_t size) {
    if (size == 0) return;
    const std::size_t whole = whole_pages(size);
    void *at = ::mmap(nullptr, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) throw std::bad_alloc();
    bytes_ = {static_cast<char *>(at), size};
}

LargeMemory::LargeMemory(LargeMemory &&other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}

std::span<char> LargeMemory::mapped(std::size_t from, std::size_t size) const {
    const std::span<char> part = bytes_.subspan(from, size);
    const std::size_t before = reinterpret_cast<std::uintptr_t>(part.data()) % small_page;
    // Not as huge pages: where memory is fragmented, the kernel makes room for them first, which takes longer. A kernel
    // before 5.14 refuses, and maps page by page.
    (void)::madvise(part.data() - before, part.size() + before, MADV_POPULATE_WRITE);
    return part;
}

LargeMemory::~LargeMemory() {
    if (!bytes_.empty()) ::munmap(bytes_.data(), whole_pages(bytes_.size()));
}

}  // namespace dcs
