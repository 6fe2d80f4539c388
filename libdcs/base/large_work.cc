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
constexpr int usual_step = 128 << 10;  // malloc's own
// Nearly a whole one of the heaps that threads other than the first have, so that each is made in one step.
constexpr int large_step = (64 << 20) - (1 << 20);

std::size_t whole_pages(std::size_t size) {
    return (size + LargeMemory::page - 1) / LargeMemory::page * LargeMemory::page;
}
}  // namespace

void in_parts(std::size_t count, const std::function<void(std::size_t)> &part) {
    constexpr std::size_t most_threads = 4;
    std::atomic<std::size_t> next{0};
    const auto work = [&] {
        for (std::size_t i = next++; i < count; i = next++) part(i);
    };
    const std::size_t threads = std::min({count, most_threads, std::size_t{std::thread::hardware_concurrency()}});
    std::vector<std::thread> helpers;
    try {
        while (helpers.size() + 1 < threads) helpers.emplace_back(work);
    } catch (const std::system_error &) {}  // there can be no more threads; this one does their parts
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
    // Not as huge pages: where memory is fragmented, the kernel makes room for them first, which takes longer. A kernel
    // before 5.14 refuses, and maps page by page.
    (void)::madvise(at, size, MADV_POPULATE_WRITE);
    bytes_ = {static_cast<char *>(at), size};
}

LargeMemory::LargeMemory(LargeMemory &&other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}

LargeMemory::~LargeMemory() {
    if (!bytes_.empty()) ::munmap(bytes_.data(), whole_pages(bytes_.size()));
}

}  // namespace dcs
