#pragma once
// Threads of one program that submit grains one by one: what they submit at the same time goes in one request.
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <memory>
#include <mutex>
#include <vector>

#include "base/instant.h"
#include "base/status.h"
#include "wire/batch_calls.h"

namespace dcs::client {

// Wakes all threads that wait for it at once.
class Bell {
public:
    std::uint32_t rung() const { return rung_; }
    // Until it has rung more often than that, at most so long; it may return earlier.
    void wait(std::uint32_t rung, const timespec *most = nullptr) const;
    void ring();

private:
    std::atomic<std::uint32_t> rung_{0};
};
using BellPtr = std::shared_ptr<Bell>;

// A grain that a thread submits by itself. Those of one session that threads submit while another is on its way go
// together in the next request: they share its round trip and its commit.
struct GroupedGrain {
    enum State : std::uint8_t { waits, leads, done };

    std::int32_t session = 0;
    wire::GrainOrder order;
    std::uint64_t bytes = 0;  // what it counts for against limits::batch_bytes
    std::atomic<State> state = waits;
    Instant came;
    BellPtr bell;   // rings when another thread has changed the state
    Status status;  // once done
};
using GroupedGrainPtr = std::shared_ptr<GroupedGrain>;

// Of the threads of a pool (Group): one request at a time is under way.
struct Submitting {
    explicit Submitting(std::mutex &guard) : mutex(guard) {}

    std::mutex &mutex;  // of what follows; it belongs to the process, so that a fork finds it free
    bool under_way = false, gathers = false;  // gathers: its thread waits for others to join it
    std::size_t last = 1;                     // how many were together in the last one
    std::vector<GroupedGrainPtr> waiting;
    BellPtr bell;                              // of all that wait but the first, which leads next
    Bell enough;                               // of the thread that gathers
    Instant trouble_since = Instant::never();  // when the first was sent of those without an answer

    void abandon() { under_way = gathers = false, waiting.clear(); }
    bool as_many_as_last() const { return 1 + waiting.size() >= last; }
    Duration waited_in_trouble(const GroupedGrain &grain, Instant now) const {
        return trouble_since > now ? Duration{} : now - std::max(trouble_since, grain.came);
    }
};

// The turn of one thread to submit: `own`, and those that wait with it.
class Group {
public:
    // Waits until it is this thread's turn, or another thread has submitted it. What it waits while the scheduler does
    // not answer counts against the patience.
    Group(Submitting &pool, GroupedGrainPtr own, Duration patience);
    ~Group();  // they are all done: with `status`
    Group(const Group &) = delete;
    Group &operator=(const Group &) = delete;

    const std::vector<GroupedGrainPtr> &grains() const { return grains_; }  // none: another thread has
    Duration waited() const { return waited_; }                             // of the patience
    bool too_late() const { return too_late_; }                             // nothing is left of it
    Status status = fail(Code::internal, "the library gave up a submission");

private:
    explicit Group(Submitting &pool) : pool_(pool) {}
    bool own_turn(const GroupedGrainPtr &own);
    void let_others_come() const;
    void let_next_lead();

    Submitting &pool_;
    bool leads_ = false, too_late_ = false;
    Duration waited_;
    Instant sent_;
    std::vector<GroupedGrainPtr> grains_;
};

}  // namespace dcs::client
