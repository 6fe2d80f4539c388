#pragma once
// Virtual time: what will happen, in a total order (time, then order of entry). Nothing else in the
// simulator has an order of its own.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/instant.h"

namespace dcs::sim {

// A party to whom things happen. `what` and `arg` are its own.
class Handler {
public:
    virtual ~Handler() = default;
    virtual void happen(std::uint32_t what, std::uint64_t arg) = 0;
};

struct Event {
    Instant at{};
    std::uint64_t order = 0;
    Handler *who = nullptr;  // called, never compared
    std::uint32_t name = 0;  // of the handler, for the trace
    std::uint32_t what = 0;
    std::uint64_t arg = 0;
};

class Queue {
public:
    void put(Instant at, Handler *who, std::uint32_t name, std::uint32_t what, std::uint64_t arg) {
        heap_.push_back(Event{at, next_++, who, name, what, arg});
        std::push_heap(heap_.begin(), heap_.end(), later);
    }
    bool empty() const { return heap_.empty(); }
    std::size_t size() const { return heap_.size(); }
    Instant next_at() const { return heap_.front().at; }
    Event take() {
        std::pop_heap(heap_.begin(), heap_.end(), later);
        const Event event = heap_.back();
        heap_.pop_back();
        return event;
    }

private:
    static bool later(const Event &a, const Event &b) { return a.at != b.at ? a.at > b.at : a.order > b.order; }
    std::vector<Event> heap_;
    std::uint64_t next_ = 1;
};

}  // namespace dcs::sim
