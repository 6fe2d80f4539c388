#pragma once
// One thread that reads contents whole and makes them durable, one at a time, over a Disk of its own.
#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "scheduler/library/library.h"
#include "scheduler/shell/job_threads.h"

namespace dcs::shell {

// A small content does not wait for gigabytes that came before it; a large one is overtaken by as many as it has MiB.
// Owners take turns: of two jobs of one owner the second counts as if it came a job later.
class JobQueue {
public:
    void put(library::Job job) {
        std::uint64_t &next = next_[job.owner];
        next = std::max(next, taken_) + 1;
        const std::uint64_t rank = job.size + (std::uint64_t{1} << 20) * (next - 1);
        jobs_.emplace(rank, std::move(job));
    }
    library::Job take() {
        ++taken_;
        std::erase_if(next_, [this](const auto &owner) { return owner.second <= taken_; });
        return std::move(jobs_.extract(jobs_.begin()).mapped());
    }
    bool empty() const { return jobs_.empty(); }

private:
    std::multimap<std::uint64_t, library::Job> jobs_;  // by rank
    std::map<std::string, std::uint64_t> next_;        // by owner, when its next job counts as come
    std::uint64_t taken_ = 0;
};

class LibraryThread {
public:
    LibraryThread(std::unique_ptr<store::Disk> disk, net::Loop &loop)
        : disk_(std::move(disk)),
          worker_(*disk_),
          thread_(1, loop, [this](library::Job job) { return worker_.work(std::move(job)); }) {}
    void start(library::Job job) { thread_.start(std::move(job)); }
    std::vector<library::JobDone> take() { return thread_.take(); }

private:
    std::unique_ptr<store::Disk> disk_;
    library::Worker worker_;  // of the thread
    JobThreads<JobQueue, library::Job, library::JobDone> thread_;
};

}  // namespace dcs::shell
