#include "scheduler/shell/library_thread.h"

#include <utility>

namespace dcs::shell {

LibraryThread::LibraryThread(std::unique_ptr<store::Disk> disk, net::Loop &loop)
    : disk_(std::move(disk)), worker_(*disk_), loop_(loop), thread_([this] { work(); }) {}

LibraryThread::~LibraryThread() {
    {
        std::lock_guard<std::mutex> guard(mutex_);
        stopping_ = true;
    }
    changed_.notify_all();
    thread_.join();
}

void LibraryThread::start(library::Job job) {
    {
        std::lock_guard<std::mutex> guard(mutex_);
        jobs_.put(std::move(job));
    }
    changed_.notify_all();
}

std::vector<library::JobDone> LibraryThread::take() {
    std::lock_guard<std::mutex> guard(mutex_);
    return std::exchange(done_, {});
}

void LibraryThread::work() {
    std::unique_lock<std::mutex> lock(mutex_);
    for (;;) {
        changed_.wait(lock, [this] { return stopping_ || !jobs_.empty(); });
        if (stopping_) return;
        library::Job job = jobs_.take();
        lock.unlock();
        library::JobDone done = worker_.work(std::move(job));
        lock.lock();
        done_.push_back(std::move(done));
        loop_.wake();
    }
}

}  // namespace dcs::shell
