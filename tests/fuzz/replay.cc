// A target without libFuzzer and sanitizers, linked with the objects that people run: `PROGRAM FILE...` runs what is
// known, the seeds that the target makes itself and then the files. One input may take ten seconds and ask for 64 MiB
// at once.
#include <atomic>
#include <csignal>
#include <fstream>
#include <iterator>
#include <new>

#include <unistd.h>

#include "meter.h"

namespace {

constexpr unsigned seconds_most = 10;
constexpr std::size_t bytes_at_once = std::size_t{64} << 20;
std::atomic<std::uint64_t> allocated{0}, times{0};
std::string input;  // that runs now

[[noreturn]] void end(const char *why) {
    const std::string words = "fuzz: " + input + ": " + why + "\n";
    (void)!::write(2, words.data(), words.size());
    std::abort();
}

void too_long(int) {
    constexpr char words[] = "fuzz: an input takes longer than ten seconds\n";
    (void)!::write(2, words, sizeof words - 1);
    std::abort();
}

void run(const std::string &name, std::string_view bytes) {
    input = name;
    ::alarm(seconds_most);
    dcs::fuzz::run(bytes);
    ::alarm(0);
}

}  // namespace

void *operator new(std::size_t size) {
    if (size > bytes_at_once) end("asks for more memory at once than any input may");
    allocated.fetch_add(size, std::memory_order_relaxed);
    times.fetch_add(1, std::memory_order_relaxed);
    void *memory = std::malloc(size ? size : 1);
    if (!memory) throw std::bad_alloc();
    return memory;
}
void operator delete(void *memory) noexcept { std::free(memory); }
void operator delete(void *memory, std::size_t) noexcept { std::free(memory); }

std::uint64_t dcs::fuzz::bytes_allocated() { return allocated.load(std::memory_order_relaxed); }
std::uint64_t dcs::fuzz::allocations() { return times.load(std::memory_order_relaxed); }
std::uint64_t dcs::fuzz::steps() { return 0; }  // this build does not count them

int main(int argc, char **argv) {
    std::signal(SIGALRM, too_long);
    std::size_t count = 0;
    for (const dcs::fuzz::Seed &seed : dcs::fuzz::seeds()) {
        run("the seed " + seed.name, seed.bytes);
        ++count;
    }
    if (count == 0) end("the target makes no seeds");
    for (int i = 1; i < argc; ++i) {
        input = argv[i];
        std::ifstream file(input, std::ios::binary);
        if (!file) end("cannot be read");
        const std::string bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
        run(argv[i], bytes);
        ++count;
    }
    std::printf("%s%zu inputs\n", dcs::fuzz::worst_costs().c_str(), count);
}
