#pragma once
// A large file is written and read past the page cache: its bytes would displace what other programs use, and pages
// that the kernel has to find for each of them take more time than the disk.
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
    // way. The descriptor is the caller's, and stays open for as long as this. `look`, in another thread, gets all
    // bytes in their order. Memory is taken for so many blocks.
    static std::unique_ptr<LargeFile> begin(int fd, std::uint64_t size, Look look = {}, std::size_t blocks = 4);
    ~LargeFile();  // what is not written yet is not
    LargeFile(const LargeFile &) = delete;
    LargeFile &operator=(const LargeFile &) = delete;

    // False with errno: a write has failed. Waits while nearly all blocks are to be written.
    bool append(std::string_view bytes);
    std::size_t room();  // so many bytes append() takes without a wait
    // In any thread: waits until the whole blocks that are there now are written.
    void catch_up();
    // False with errno. All is written and looked at, but not synced, and the file has that size.
    bool finish();

private:
    struct Block {
        std::unique_ptr<LargeBlock> memory;  // from its first use on
        std::size_t filled = 0;
    };
    struct Worker {
        std::function<int(std::string_view)> work;  // an errno, or 0
        std::uint64_t done = 0;                     // blocks
        std::thread thread;
    };

    LargeFile(int fd, Look look, std::size_t blocks);
    Block &at_hand() { return ring_[full_ % ring_.size()]; }
    void run(Worker &worker);
    int write(std::string_view bytes);
    std::uint64_t done_by_all() const;
    bool pass_on(std::unique_lock<std::mutex> &lock);

    const int fd_;
    std::uint64_t written_ = 0;  // of the thread that writes
    std::vector<Block> ring_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::uint64_t full_ = 0;  // blocks that were handed to the workers
    int error_ = 0;
    bool stopping_ = false;
    std::vector<Worker> workers_;
};

// Reads pieces of a large file, best in their order: a thread of its own reads the next block meanwhile.
class LargeReader {
public:
    // `past_cache`: if the file system can do that.
    explicit LargeReader(Fd fd, bool past_cache = true);
    ~LargeReader();
    LargeReader(const LargeReader &) = delete;
    LargeReader &operator=(const LargeReader &) = delete;

    // What there is from that place on, up to the end of a block; valid until the next call. Empty: the file ends
    // there. False with errno.
    bool look(std::uint64_t at, std::string_view &bytes);
    // As many bytes from there on as `bytes` has, or as there are: then it becomes shorter. False with errno.
    bool read(std::uint64_t at, std::string &bytes);

private:
    struct Part {
        LargeBlock memory;
        std::uint64_t from = UINT64_MAX;
        std::size_t filled = 0;
        int error = 0;
    };
    void run();
    void fill(Part &part, std::uint64_t from);
    void take(std::uint64_t from);

    Fd fd_;
    std::unique_ptr<Part> here_ = std::make_unique<Part>(), next_ = std::make_unique<Part>();
    std::mutex mutex_;
    std::condition_variable changed_;
    std::uint64_t wanted_ = UINT64_MAX;  // the thread reads that block into next_
    bool stopping_ = false;
    std::thread thread_;
};

}  // namespace dcs
