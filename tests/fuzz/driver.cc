// The entry points of libFuzzer. `PROGRAM --seeds DIRECTORY` writes the inputs that the target begins with,
// `PROGRAM --each N` prints what reading cost at most.
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <new>

#include <sanitizer/allocator_interface.h>

#include "meter.h"

namespace dcs::fuzz {
namespace {

std::atomic<std::uint64_t> allocated{0}, times{0};
std::uint64_t reads = 0;  // several threads may lose some: a target with threads bounds no steps

void note_allocation(const volatile void *, std::size_t size) {
    allocated.fetch_add(size, std::memory_order_relaxed);
    times.fetch_add(1, std::memory_order_relaxed);
}
void note_release(const volatile void *) {}

void print_worst() { std::fputs(worst_costs().c_str(), stderr); }

[[maybe_unused]] const int hooks = __sanitizer_install_malloc_and_free_hooks(note_allocation, note_release);

}  // namespace

std::uint64_t bytes_allocated() { return allocated.load(std::memory_order_relaxed); }
std::uint64_t allocations() { return times.load(std::memory_order_relaxed); }
std::uint64_t steps() { return reads; }

}  // namespace dcs::fuzz

#if !__has_feature(address_sanitizer)  // whose hooks see each allocation; without it, those of C++ are counted
void *operator new(std::size_t size) {
    dcs::fuzz::note_allocation(nullptr, size);
    if (void *memory = std::malloc(size)) return memory;
    throw std::bad_alloc();
}
void operator delete(void *memory) noexcept { std::free(memory); }
void operator delete(void *memory, std::size_t) noexcept { std::free(memory); }
#endif

// The compiler calls one for each read of memory in what it has instrumented (the preset `fuzz`).
#define DCS_COUNTED_READ(bytes)                                                                                   \
    extern "C" void __sanitizer_cov_load##bytes(const void *);                                                    \
    extern "C" __attribute__((no_sanitize("address", "undefined", "coverage"))) void __sanitizer_cov_load##bytes( \
        const void *) {                                                                                           \
        ++dcs::fuzz::reads;                                                                                       \
    }
DCS_COUNTED_READ(1)
DCS_COUNTED_READ(2)
DCS_COUNTED_READ(4)
DCS_COUNTED_READ(8)
DCS_COUNTED_READ(16)

extern "C" int LLVMFuzzerInitialize(int *argc, char ***argv) {
    if (*argc < 3) return 0;
    if (std::strcmp((*argv)[1], "--each") == 0 && dcs::fuzz::each) {
        dcs::fuzz::each(std::strtoull((*argv)[2], nullptr, 10));
        dcs::fuzz::print_worst();
        std::exit(0);
    }
    if (std::strcmp((*argv)[1], "--seeds") != 0) return 0;
    for (const dcs::fuzz::Seed &seed : dcs::fuzz::seeds()) {
        std::ofstream file(std::string((*argv)[2]) + "/" + seed.name, std::ios::binary);
        file << seed.bytes;
        if (!file.flush()) {
            std::fprintf(stderr, "fuzz: cannot write %s/%s\n", (*argv)[2], seed.name.c_str());
            std::exit(1);
        }
    }
    std::exit(0);
}

extern "C" int LLVMFuzzerTestOneInput(const unsigned char *data, std::size_t size) {
    dcs::fuzz::run(std::string_view(reinterpret_cast<const char *>(data), size));
    return 0;
}
