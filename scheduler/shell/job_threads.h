#pragma once
// Threads beside the event loop that do the jobs of a queue.
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "net/loop.h"

namespace dcs::shell {

// A Queue has put(), take() and empty().
template <class Queue, class Job, class Done> class JobThreads {
public:
    // `loop` is woken when a job is done, and outlives this.
    JobThreads(int threads, net::Loop &loop, std::function<Done(Job)> work) : work_(std::move(work)), loop_(loop) {
        for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { run(); });
    }
    ~JobThreads() {  // waits for the jobs at hand; the others are not done
        {
            std::lock_guard<std::mutex> guard(mutex_);
            stopping_ = true;
        }
        changed_.notify_all();
        for (std::thread &thread : threads_) thread.join();
    }
    JobThreads(const JobThreads &) = delete;
    JobThreads &operator=(const JobThreads &) = delete;

    void start(Job job) {
        {
            std::lock_guard<std::mutex> guard(mutex_);
            jobs_.put(std::move(job));
        }
        changed_.notify_one();
    }
    std::vector<Done> take() {
        std::lock_guard<std::mutex> guard(mutex_);
        return std::exchange(done_, {});
    }

private:
    void run() {
        std::unique_lock<std::mutex> lock(mutex_);
        for (;;) {
            changed_.wait(lock, [this] { return stopping_ || !jobs_.empty(); });
            if (stopping_) return;
            Job job = jobs_.take();
            lock.unlock();
            Done done = work_(std::move(job));
            lock.lock();
            done_.push_back(std::move(done));
            loop_.wake();
        }
    }

    const std::function<Done(Job)> work_;
    net::Loop &loop_;
    std::mutex mutex_;
    std::condition_variable changed_;
    Queue jobs_;
    std::vector<Done> done_;
    bool stopping_ = false;
    std::vector<std::thread> threads_;
};

}  // namespace dcs::shell
