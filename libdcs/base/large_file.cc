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
std::unique_ptr<LargeFile> LargeFile::begin(int fd, std::uint64_t size, Look look, std::size_t blocks) {
    if (::fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, static_cast<off_t>(size)) != 0) return nullptr;
    if (!set_direct(fd, true)) return nullptr;
    return std::unique_ptr<LargeFile>(new LargeFile(fd, std::move(look), blocks));
}

LargeFile::LargeFile(int fd, Look look, std::size_t blocks) : fd_(fd), ring_(blocks) {
    DCS_REQUIRE(blocks > 1, "one block is filled while others are written");
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
        const Block &block = ring_[worker.done % ring_.size()];
        lock.unlock();
        const int error = worker.work(std::string_view(block.memory->data(), block.filled));
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
    changed_.wait(lock, [this] { return full_ - done_by_all() < ring_.size(); });
    at_hand().filled = 0;
    errno = error_;
    return error_ == 0;
}

bool LargeFile::append(std::string_view bytes) {
    while (!bytes.empty()) {
        Block &block = at_hand();
        if (!block.memory) block.memory = std::make_unique<LargeBlock>();
        const std::size_t n = std::min(bytes.size(), large_block_bytes - block.filled);
        std::memcpy(block.memory->data() + block.filled, bytes.data(), n);
        block.filled += n;
        bytes.remove_prefix(n);
        if (block.filled < large_block_bytes) break;
        std::unique_lock<std::mutex> lock(mutex_);
        if (!pass_on(lock)) return false;
    }
    return true;
}

std::size_t LargeFile::room() {
    std::lock_guard<std::mutex> guard(mutex_);
    const std::size_t free = ring_.size() - static_cast<std::size_t>(full_ - done_by_all());
    return free * large_block_bytes - at_hand().filled - 1;
}

void LargeFile::catch_up() {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [this, until = full_] { return done_by_all() >= until; });
}

bool LargeFile::finish() {
    std::unique_lock<std::mutex> lock(mutex_);
    if (at_hand().filled > 0 && !pass_on(lock)) return false;
    changed_.wait(lock, [this] { return done_by_all() == full_; });
    errno = error_;
    // What was taken of the disk and is not needed goes back.
    return error_ == 0 && ::ftruncate(fd_, static_cast<off_t>(written_)) == 0 && set_direct(fd_, false);
}

LargeReader::LargeReader(Fd fd, bool past_cache) : fd_(std::move(fd)) {
    if (past_cache) (void)set_direct(fd_.get(), true);
    const SignalsHeld held;
    thread_ = std::thread([this] { run(); });
}

LargeReader::~LargeReader() {
    {
        std::lock_guard<std::mutex> guard(mutex_);
        stopping_ = true;
    }
    changed_.notify_all();
    thread_.join();
}

void LargeReader::run() {
    std::unique_lock<std::mutex> lock(mutex_);
    for (;;) {
        changed_.wait(lock, [this] { return stopping_ || wanted_ != UINT64_MAX; });
        if (stopping_) return;
        Part &part = *next_;
        lock.unlock();
        fill(part, wanted_);
        lock.lock();
        wanted_ = UINT64_MAX;
        changed_.notify_all();
    }
}

void LargeReader::fill(Part &part, std::uint64_t from) {
    part.from = from;
    part.filled = 0;
    part.error = 0;
    while (part.filled < large_block_bytes) {
        const ssize_t n = ::pread(fd_.get(), part.memory.data() + part.filled, large_block_bytes - part.filled,
                                  static_cast<off_t>(from + part.filled));
        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && errno == EINVAL && is_direct(fd_.get()) && set_direct(fd_.get(), false)) continue;
        if (n < 0) part.error = errno;
        if (n > 0) part.filled += static_cast<std::size_t>(n);
        // Only the end of the file has a part of a unit.
        if (n <= 0 || static_cast<std::size_t>(n) % alignment != 0) break;
    }
}

// That block is here, and the next one is on its way.
void LargeReader::take(std::uint64_t from) {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [this] { return wanted_ == UINT64_MAX; });
    if (next_->from == from && next_->error == 0) std::swap(here_, next_);
    else fill(*here_, from);
    if (here_->filled < large_block_bytes) return;
    wanted_ = from + large_block_bytes;
    changed_.notify_all();
}

bool LargeReader::look(std::uint64_t at, std::string_view &bytes) {
    const std::uint64_t from = at / large_block_bytes * large_block_bytes;
    if (here_->from != from || here_->error != 0) take(from);
    const auto skip = static_cast<std::size_t>(at - from);
    bytes = std::string_view(here_->memory.data(), here_->filled).substr(std::min(skip, here_->filled));
    errno = here_->error;
    return here_->error == 0;
}

bool LargeReader::read(std::uint64_t at, std::string &bytes) {
    std::size_t got = 0;
    std::string_view part;
    while (got < bytes.size()) {
        if (!look(at + got, part)) return false;
        if (part.empty()) break;
        part = part.substr(0, bytes.size() - got);
        std::memcpy(bytes.data() + got, part.data(), part.size());
        got += part.size();
    }
    bytes.resize(got);
    return true;
}

}  // namespace dcs
