#pragma once
// The thread that asks the scheduler: one question at a time, however many browsers look. It makes what they get.
#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "base/instant.h"
#include "details.h"
#include "series.h"
#include "journal.h"
#include "published.h"
#include "snapshot.h"

namespace dcs::commands::page {

class Collector {
public:
    using Publish = std::function<void(std::shared_ptr<const Published>)>;
    using Done = std::function<void(Detail)>;
    static constexpr std::size_t most_questions = 64, most_kept = 64;

    // `publish` and what ask() is given are called in the collector's thread. The thread never ends: it may be in a
    // question when the process ends.
    // `file`: keeps throughput and queue for the next process; empty: none.
    Collector(std::string directory, std::string file, double interval_s, double certificate_end_s, Publish publish);
    void start();
    // The page of one session, grain or host. False: too many ask already.
    bool ask(const std::string &target, Done done);
    // How many browsers follow the page: without any, the pool is looked at rarely.
    void set_watchers(std::size_t n);

private:
    struct Kept {
        Detail detail;
        Instant until;
    };
    [[noreturn]] void run();
    void look();
    void answer_questions();
    Detail detail_of(const std::string &target);
    Duration pause_after(double took_s) const;

    const std::string directory_, file_, run_;
    const double interval_s_, certificate_end_s_, started_s_;
    const Publish publish_;
    std::atomic<std::size_t> watchers_{0};
    std::mutex mutex_;  // of what follows
    std::condition_variable news_;
    std::deque<std::pair<std::string, Done>> questions_;
    bool hurry_ = false;
    // of the thread alone
    Snapshot snapshot_;
    HostCounters counters_;
    Journal journal_;
    Series series_;
    Published last_;
    std::map<std::string, Kept> kept_;
};

}  // namespace dcs::commands::page
