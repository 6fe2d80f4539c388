// Files that are written and read past the page cache. Where a file system cannot do that, nothing is made.
#include <catch2/catch.hpp>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <thread>

#include <fcntl.h>
#include <unistd.h>

#include "base/files.h"
#include "base/large_file.h"

using namespace dcs;

namespace {
struct LargeScratch {
    std::string path = "/var/tmp/dcs-large-XXXXXX";
    LargeScratch() { REQUIRE(::mkdtemp(path.data()) != nullptr); }
    ~LargeScratch() { CHECK(remove_tree(AT_FDCWD, path)); }
    Fd make(const char *name) const {
        return Fd(::open((path + "/" + name).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    }
};

std::string some_bytes(std::size_t size) {
    std::string bytes(size, '\0');
    std::uint32_t x = 12345;
    for (char &c : bytes) c = static_cast<char>((x = x * 1664525 + 1013904223) >> 24);
    return bytes;
}

std::string content_of(int fd, std::size_t most) {
    std::string bytes(most, '\0');
    REQUIRE(pread_all(fd, bytes, 0));
    return bytes;
}
}  // namespace

TEST_CASE("a large file has what was appended, in pieces of any size, and the other thread sees all of it") {
    const LargeScratch d;
    const std::size_t size = GENERATE(std::size_t{0}, std::size_t{1}, std::size_t{4096}, 3 * large_block_bytes,
                                      9 * large_block_bytes + 4096 + 77);
    const std::string bytes = some_bytes(size);
    const Fd fd = d.make("f");
    std::string seen;
    // More is announced than comes.
    auto file = LargeFile::begin(fd.get(), size + 5 * large_block_bytes, [&](std::string_view b) { seen += b; });
    if (!file) return;
    for (std::size_t at = 0, n = 1; at < size; at += n, n = n * 3 + 1)
        REQUIRE(file->append(std::string_view(bytes).substr(at, n)));
    REQUIRE(file->finish());
    CHECK(seen == bytes);
    CHECK(content_of(fd.get(), size + 9) == bytes);
    file.reset();
    CHECK(content_of(fd.get(), size + 9) == bytes);

    LargeReader reader(d.make("f"));
    std::string back;
    for (std::size_t at = 0; at < size;) {
        std::string piece(300'000, '\0');
        REQUIRE(reader.read(at, piece));
        REQUIRE_FALSE(piece.empty());
        at += piece.size();
        back += piece;
    }
    CHECK(back == bytes);
    std::string beyond(10, 'x');
    CHECK(reader.read(size, beyond));
    CHECK(beyond.empty());
    std::string first(1, 'x');  // out of order
    CHECK(reader.read(0, first));
    CHECK(first == bytes.substr(0, 1));
}

TEST_CASE("what a large file takes without a wait is known, and there is room again when it has caught up") {
    const LargeScratch d;
    const Fd fd = d.make("f");
    std::atomic<bool> held = true;
    auto file = LargeFile::begin(
        fd.get(), 8 * large_block_bytes,
        [&](std::string_view) {
            while (held) std::this_thread::yield();
        },
        3);
    if (!file) return;
    CHECK(file->room() == 3 * large_block_bytes - 1);
    REQUIRE(file->append(std::string(2 * large_block_bytes + 10, 'x')));
    CHECK(file->room() == large_block_bytes - 11);
    std::thread other([&] { held = false; });
    file->catch_up();
    other.join();
    CHECK(file->room() == 3 * large_block_bytes - 11);
    REQUIRE(file->finish());
}

TEST_CASE("a write that fails is told, and an end in the middle waits for nothing") {
    const LargeScratch d;
    const std::string bytes = some_bytes(large_block_bytes);
    {
        const Fd fd = d.make("f");
        auto file = LargeFile::begin(fd.get(), 40 * large_block_bytes);
        if (!file) return;
        REQUIRE(file->append(bytes));
    }
    const Fd fd = d.make("g");
    auto file = LargeFile::begin(fd.get(), 40 * large_block_bytes);
    REQUIRE(file);
    const Fd only_read(::open((d.path + "/g").c_str(), O_RDONLY | O_CLOEXEC));
    REQUIRE(::dup2(only_read.get(), fd.get()) == fd.get());
    int appended = 0;
    while (appended < 40 && file->append(bytes)) ++appended;
    CHECK(appended < 40);
    CHECK(errno == EBADF);
    CHECK_FALSE(file->finish());
    CHECK(errno == EBADF);
}

TEST_CASE("where there is no room or no such file, a large one is not begun") {
    const LargeScratch d;
    CHECK_FALSE(LargeFile::begin(-1, 1));
    CHECK(errno == EBADF);
    const Fd fd = d.make("f");
    CHECK_FALSE(LargeFile::begin(fd.get(), std::uint64_t{1} << 60));
    CHECK((errno == ENOSPC || errno == EFBIG || errno == EOPNOTSUPP));
    CHECK(content_of(fd.get(), 1).empty());
}
