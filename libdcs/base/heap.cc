#include "base/heap.h"

#include <malloc.h>

namespace dcs {
namespace {
constexpr int piece = 4 << 20;  // what is larger goes back at once
constexpr int kept = 16 << 20;  // of each thread's heap
}  // namespace

void keep_buffers() {
    (void)::mallopt(M_MMAP_THRESHOLD, piece);
    (void)::mallopt(M_TRIM_THRESHOLD, kept);
}

}  // namespace dcs
