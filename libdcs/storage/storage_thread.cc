#include "storage/storage_thread.h"

#include "base/failpoint.h"
#include "base/require.h"

namespace dcs::storage {

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
    start(Job::commit);
}

void StorageThread::flush() { start(Job::flush); }

std::optional<StorageThread::Done> StorageThread::take() {
    if (!busy_) return std::nullopt;
    std::lock_guard<std::mutex> guard(mutex_);
    if (!done_) return std::nullopt;
    busy_ = false;
    return std::exchange(done_, std::nullopt);
}

void StorageThread::wait() {
    if (!busy_) return;
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

        Done done{.was_commit = job == Job::commit};
        failpoint(done.was_commit ? "shell.commit.before" : "shell.flush.before");
        done.result = done.was_commit ? store_.commit(updates_, room_) : store_.flush();
        failpoint(done.was_commit ? "shell.commit.after" : "shell.flush.after");
        updates_.clear();

        lock.lock();
        done_ = std::move(done);
        lock.unlock();
        changed_.notify_all();
        loop_.wake();
    }
}

}  // namespace dcs::storage
