#include "storage/storage_thread.h"

#include "base/failpoint.h"
#include "base/require.h"

namespace dcs::storage {
namespace {

// Of a commit that is made at once.
constexpr std::size_t small_bytes = 16 * 1024;

bool is_small(const std::vector<store::TreeUpdate> &updates) {
    std::size_t bytes = 0;
    for (const store::TreeUpdate &update : updates) {
        if (update.remove) return false;
        for (const store::NodeUpdate &node : update.nodes) bytes += node.content().size();
    }
    return bytes <= small_bytes;
}

}  // namespace

StorageThread::StorageThread(store::Store &store, net::Loop &loop)
    : store_(store), loop_(loop), thread_([this] { work(); }) {}

StorageThread::~StorageThread() {
    wait();
    {
        std::lock_guard<std::mutex> guard(mutex_);
        job_ = Job::stop;
    }
    changed_.notify_all();
    thread_.join();
}

void StorageThread::start(Job job) {
    DCS_REQUIRE(!busy_, "the storage thread does one thing at a time");
    busy_ = true;
    {
        std::lock_guard<std::mutex> guard(mutex_);
        job_ = job;
    }
    changed_.notify_all();
}

void StorageThread::commit(std::vector<store::TreeUpdate> updates, store::Room room) {
    DCS_REQUIRE(!busy_, "the storage thread does one thing at a time");
    updates_ = std::move(updates);
    room_ = room;
    if (!is_small(updates_)) return start(Job::commit);
    busy_ = true;
    own_done_ = done_by(Job::commit);
}

void StorageThread::flush() { start(Job::flush); }

std::optional<StorageThread::Done> StorageThread::take() {
    if (!busy_) return std::nullopt;
    std::optional<Done> done = std::exchange(own_done_, std::nullopt);
    if (!done) {
        std::lock_guard<std::mutex> guard(mutex_);
        done = std::exchange(done_, std::nullopt);
    }
    busy_ = !done;
    return done;
}

void StorageThread::wait() {
    if (!busy_ || answered()) return;
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [this] { return done_.has_value(); });
}

void StorageThread::work() {
    for (;;) {
        std::unique_lock<std::mutex> lock(mutex_);
        changed_.wait(lock, [this] { return job_ != Job::none; });
        const Job job = std::exchange(job_, Job::none);
        if (job == Job::stop) return;
        lock.unlock();

        Done done = done_by(job);
        lock.lock();
        done_ = std::move(done);
        lock.unlock();
        changed_.notify_all();
        loop_.wake();
    }
}

StorageThread::Done StorageThread::done_by(Job job) {
    Done done{.was_commit = job == Job::commit};
    failpoint(done.was_commit ? "shell.commit.before" : "shell.flush.before");
    done.result = done.was_commit ? store_.commit(updates_, room_) : store_.flush();
    failpoint(done.was_commit ? "shell.commit.after" : "shell.flush.after");
    updates_.clear();
    return done;
}

}  // namespace dcs::storage
