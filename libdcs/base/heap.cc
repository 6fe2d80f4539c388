#include "base/heap.h"

#include <malloc.h>
#include <new>
#include <sys/mman.h>
#include <utility>

namespace dcs {
namespace {
constexpr int piece = 4 << 20;         // what is larger goes back at once
constexpr int kept = 16 << 20;         // of each thread's heap
constexpr int usual_step = 128 << 10;  // malloc's own
// Nearly a whole one of the heaps that threads other than the first have, so that these are there at once.
constexpr int large_step = (64 << 20) - (1 << 20);

std::size_t mapped(std::size_t size) { return (size + LargeMemory::page - 1) / LargeMemory::page * LargeMemory::page; }
}  // namespace

void keep_buffers() {
    (void)::mallopt(M_MMAP_THRESHOLD, piece);
    (void)::mallopt(M_TRIM_THRESHOLD, kept);
}

LargeSteps::LargeSteps() { (void)::mallopt(M_TOP_PAD, large_step); }
LargeSteps::~LargeSteps() { (void)::mallopt(M_TOP_PAD, usual_step); }

LargeMemory::LargeMemory(std::size_t size) {
    if (size == 0) return;
    const std::size_t whole = mapped(size);
    void *at = ::mmap(nullptr, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) throw std::bad_alloc();
    (void)::madvise(at, whole, MADV_HUGEPAGE);  // a kernel without them refuses
    bytes_ = {static_cast<char *>(at), size};
}

LargeMemory::LargeMemory(LargeMemory &&other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}

LargeMemory::~LargeMemory() {
    if (!bytes_.empty()) ::munmap(bytes_.data(), mapped(bytes_.size()));
}

}  // namespace dcs
