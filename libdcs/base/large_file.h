#pragma once
// A large file is written and read past the page cache: its bytes would displace what other programs use, and pages
// that the kernel has to find for each of them take more time than the disk.
#include <array>
#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <sys/types.h>

#include "base/fd.h"

namespace dcs {

inline constexpr std::uint64_t large_file_bytes = 64u << 20;  // from this size on
inline constexpr std::size_t large_block_bytes = 1u << 20;    // what one call writes or reads

// Memory for one block, as such calls need it.
class LargeBlock {
public:
    LargeBlock();
    char *data() const { return bytes_.get(); }

private:
    struct Free {
        void operator()(char *bytes) const { std::free(bytes); }
    };
    std::unique_ptr<char, Free> bytes_;
};

// Writes a new file from its beginning, by a thread of its own, while the caller makes the next bytes.
class LargeFile {
public:
    using Look = std::function<void(std::string_view)>;

    // Null with errno: the file system cannot do it, or has no room for so many bytes; write the file in the ordinary
    // way. The descriptor stays open for as long as this; it is of the caller. `look`, in another thread, gets all bytes
    // in their order.
    static std::unique_ptr<LargeFile> begin(int fd, std::uint64_t size, Look look = {});
    ~LargeFile();  // what is not written yet is not
    LargeFile(const LargeFile &) = delete;
    LargeFile &operator=(const LargeFile &) = delete;

    // False with errno: a write has failed. Waits while some blocks are to be written.
    bool append(std::string_view bytes);
    // False with errno. All is written and looked at, but not synced, and the file has that size.
    bool finish();

private:
    static constexpr std::size_t blocks = 4;
    struct Block {
        LargeBlock memory;
        std::size_t filled = 0;
    };
    struct Worker {
        std::function<int(std::string_view)> work;  // an errno, or 0
        std::uint64_t done = 0;                     // blocks
        std::thread thread;
    };

    LargeFile(int fd, Look look);
    void run(Worker &worker);
    int write(std::string_view bytes);
    std::uint64_t done_by_all() const;
    bool pass_on(std::unique_lock<std::mutex> &lock);

    const int fd_;
    std::uint64_t written_ = 0;  // of the thread that writes
    std::array<Block, blocks> ring_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::uint64_t full_ = 0;  // blocks that were handed to the workers
    int error_ = 0;
    bool stopping_ = false;
    std::vector<Worker> workers_;
};

// A block from that place on, a multiple of its size: how much there is; -1 with errno. Past the page cache if
// read_past_cache() was called and the file system can do it.
ssize_t read_block(int fd, std::uint64_t from, const LargeBlock &block);
void read_past_cache(int fd);

// Reads pieces of a large file, best in their order.
class LargeReader {
public:
    explicit LargeReader(Fd fd);
    // As many bytes from there on as `bytes` has, or as there are: then it becomes shorter. False with errno.
    bool read(std::uint64_t at, std::string &bytes);

private:
    Fd fd_;
    LargeBlock block_;
    std::uint64_t from_ = 0;
    std::size_t filled_ = 0;  // of the block
};

}  // namespace dcs
