#pragma once
// One thread beside the event loop that commits and flushes, so that frames are read while the
// disk works. One job at a time; between start and take() the store belongs to this thread. A small commit is made on
// the loop's thread: to wake another one and be woken by it takes longer than its sync.
#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "net/loop.h"
#include "store/store.h"

namespace dcs::storage {

class StorageThread {
public:
    struct Done {
        bool was_commit = false;  // else a flush
        store::CommitResult result;
    };

    // `loop` is woken when this thread has done a job. Both outlive this.
    StorageThread(store::Store &store, net::Loop &loop);
    ~StorageThread();  // waits for the job at hand
    StorageThread(const StorageThread &) = delete;
    StorageThread &operator=(const StorageThread &) = delete;

    void commit(std::vector<store::TreeUpdate> updates, store::Room room);
    void flush();
    // A job was started and its answer not taken.
    bool busy() const { return busy_; }
    // The answer to a job that was done at once: the loop is not woken for it.
    bool answered() const { return own_done_.has_value(); }
    // The answer, if there is one.
    std::optional<Done> take();
    // Waits for the answer, without reading sockets.
    void wait();

private:
    enum class Job : std::uint8_t { none, commit, flush, stop };
    void start(Job job);
    void work();
    Done done_by(Job job);

    store::Store &store_;
    net::Loop &loop_;
    bool busy_ = false;             // the loop's thread only
    std::optional<Done> own_done_;  // likewise

    std::mutex mutex_;
    std::condition_variable changed_;
    Job job_ = Job::none;
    std::vector<store::TreeUpdate> updates_;
    store::Room room_ = store::Room::ordinary;
    std::optional<Done> done_;
    std::thread thread_;
};

}  // namespace dcs::storage
