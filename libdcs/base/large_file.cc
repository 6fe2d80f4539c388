#include "base/large_file.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

#include "base/files.h"
#include "base/require.h"

namespace dcs {
namespace {

constexpr std::size_t alignment = 4096;

bool set_direct(int fd, bool on) {
    const int flags = ::fcntl(fd, F_GETFL);
    return flags >= 0 && ::fcntl(fd, F_SETFL, on ? flags | O_DIRECT : flags & ~O_DIRECT) == 0;
}

bool is_direct(int fd) {
    const int flags = ::fcntl(fd, F_GETFL);
    return flags >= 0 && (flags & O_DIRECT) != 0;
}

// Signals are for the threads of the program.
class SignalsHeld {
public:
    SignalsHeld() {
        sigset_t all;
        ::sigfillset(&all);
        ::pthread_sigmask(SIG_SETMASK, &all, &before_);
    }
    ~SignalsHeld() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

private:
    sigset_t before_;
};

}  // namespace

LargeBlock::LargeBlock() : bytes_(static_cast<char *>(std::aligned_alloc(alignment, large_block_bytes))) {
    DCS_REQUIRE(bytes_, "there is memory for a block");
}

// Its place on the disk is taken first, so that a full disk is known before the first byte.
std::unique_ptr<LargeFile> LargeFile::begin(int fd, std::uint64_t size, Look look) {
    if (::fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, static_cast<off_t>(size)) != 0) return nullptr;
    if (!set_direct(fd, true)) return nullptr;
    return std::unique_ptr<LargeFile>(new LargeFile(fd, std::move(look)));
}

LargeFile::LargeFile(int fd, Look look) : fd_(fd) {
    workers_.reserve(2);
    workers_.emplace_back().work = [this](std::string_view bytes) { return write(bytes); };
    if (look)
        workers_.emplace_back().work = [look = std::move(look)](std::string_view bytes) {
            look(bytes);
            return 0;
        };
    const SignalsHeld held;
    for (Worker &worker : workers_) worker.thread = std::thread([this, &worker] { run(worker); });
}

LargeFile::~LargeFile() {
    {
        std::lock_guard<std::mutex> guard(mutex_);
        stopping_ = true;
    }
    changed_.notify_all();
    for (Worker &worker : workers_) worker.thread.join();
}

void LargeFile::run(Worker &worker) {
    std::unique_lock<std::mutex> lock(mutex_);
    for (;;) {
        changed_.wait(lock, [&] { return stopping_ || worker.done < full_; });
        if (stopping_) return;
        const Block &block = ring_[worker.done % blocks];
        lock.unlock();
        const int error = worker.work(std::string_view(block.memory.data(), block.filled));
        lock.lock();
        if (error_ == 0) error_ = error;
        ++worker.done;
        changed_.notify_all();
    }
}

// The end of the file is no whole unit of the disk: it goes in the ordinary way, as does all where such writes do not.
int LargeFile::write(std::string_view bytes) {
    const std::size_t whole = bytes.size() / alignment * alignment;
    const auto put = [this](std::string_view part) {
        const bool done = pwrite_all(fd_, part, static_cast<std::int64_t>(written_));
        if (done) written_ += part.size();
        return done;
    };
    if (whole > 0 && !put(bytes.substr(0, whole))) {
        if (errno != EINVAL || !is_direct(fd_) || !set_direct(fd_, false) || !put(bytes.substr(0, whole))) return errno;
    }
    if (whole == bytes.size()) return 0;
    return set_direct(fd_, false) && put(bytes.substr(whole)) ? 0 : errno;
}

std::uint64_t LargeFile::done_by_all() const {
    std::uint64_t least = full_;
    for (const Worker &worker : workers_) least = std::min(least, worker.done);
    return least;
}

// The block at hand goes to the workers, and the next one is free.
bool LargeFile::pass_on(std::unique_lock<std::mutex> &lock) {
    ++full_;
    changed_.notify_all();
    changed_.wait(lock, [this] { return full_ - done_by_all() < blocks; });
    ring_[full_ % blocks].filled = 0;
    errno = error_;
    return error_ == 0;
}

bool LargeFile::append(std::string_view bytes) {
    while (!bytes.empty()) {
        Block &block = ring_[full_ % blocks];
        const std::size_t n = std::min(bytes.size(), large_block_bytes - block.filled);
        std::memcpy(block.memory.data() + block.filled, bytes.data(), n);
        block.filled += n;
        bytes.remove_prefix(n);
        if (block.filled < large_block_bytes) break;
        std::unique_lock<std::mutex> lock(mutex_);
        if (!pass_on(lock)) return false;
    }
    return true;
}

bool LargeFile::finish() {
    std::unique_lock<std::mutex> lock(mutex_);
    if (ring_[full_ % blocks].filled > 0 && !pass_on(lock)) return false;
    changed_.wait(lock, [this] { return done_by_all() == full_; });
    errno = error_;
    // What was taken of the disk and is not needed goes back.
    return error_ == 0 && ::ftruncate(fd_, static_cast<off_t>(written_)) == 0 && set_direct(fd_, false);
}

void read_past_cache(int fd) { (void)set_direct(fd, true); }

ssize_t read_block(int fd, std::uint64_t from, const LargeBlock &block) {
    DCS_REQUIRE(from % large_block_bytes == 0, "a block begins at a multiple of its size");
    std::size_t filled = 0;
    while (filled < large_block_bytes) {
        const ssize_t n =
            ::pread(fd, block.data() + filled, large_block_bytes - filled, static_cast<off_t>(from + filled));
        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && errno == EINVAL && is_direct(fd) && set_direct(fd, false)) continue;
        if (n < 0) return -1;
        filled += static_cast<std::size_t>(n);
        // Only the end of the file has a part of a unit.
        if (n == 0 || static_cast<std::size_t>(n) % alignment != 0) break;
    }
    return static_cast<ssize_t>(filled);
}

LargeReader::LargeReader(Fd fd) : fd_(std::move(fd)) { read_past_cache(fd_.get()); }

bool LargeReader::read(std::uint64_t at, std::string &bytes) {
    std::size_t got = 0;
    while (got < bytes.size()) {
        const std::uint64_t from = (at + got) / large_block_bytes * large_block_bytes;
        if (from != from_ || filled_ == 0) {
            from_ = from;
            filled_ = 0;
            const ssize_t n = read_block(fd_.get(), from, block_);
            if (n < 0) return false;
            filled_ = static_cast<std::size_t>(n);
        }
        const std::size_t skip = (at + got) - from_;
        if (skip >= filled_) break;
        const std::size_t n = std::min(bytes.size() - got, filled_ - skip);
        std::memcpy(bytes.data() + got, block_.data() + skip, n);
        got += n;
    }
    bytes.resize(got);
    return true;
}

}  // namespace dcs
