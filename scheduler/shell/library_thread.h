#pragma once
// One thread that reads contents whole and makes them durable, one after the other, over a Disk of its own.
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "net/loop.h"
#include "scheduler/library/library.h"

namespace dcs::shell {

class LibraryThread {
public:
    // `loop` is woken when a job is done, and outlives this.
    LibraryThread(std::unique_ptr<store::Disk> disk, net::Loop &loop);
    ~LibraryThread();  // waits for the job at hand; the others are not done
    LibraryThread(const LibraryThread &) = delete;
    LibraryThread &operator=(const LibraryThread &) = delete;

    void start(library::Job job);
    std::vector<library::JobDone> take();

private:
    void work();

    std::unique_ptr<store::Disk> disk_;
    net::Loop &loop_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<library::Job> jobs_;
    std::vector<library::JobDone> done_;
    bool stopping_ = false;
    std::thread thread_;
};

}  // namespace dcs::shell
