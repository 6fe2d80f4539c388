#pragma once
// Takers of counted slots, in this process and in others.
#include <string>
#include <vector>

#include "locks/counted_slots.h"
#include "locks/files/world.h"
#include "lock_bench.h"

namespace lock_bench {

using namespace dcs;
using namespace dcs::locks;

inline Result<Slots> ask(const Place &place, int limit, const Deadline &until = Deadline::none(),
                         const std::string &note = "") {
    return Slots::take(this_world(), {{place, limit}}, until, note);
}

inline Slots take(const Place &place, int limit, const std::string &note = "") {
    Result<Slots> got = ask(place, limit, Deadline::none(), note);
    INFO(got.status().text);
    REQUIRE(got);
    return std::move(*got);
}

inline bool full(const Place &place, int limit) {
    const Result<Slots> got = ask(place, limit);
    if (!got) CHECK(got.status().code == Code::limit);
    return !got;
}

inline std::vector<int> held_numbers(const Place &place) {
    const Result<std::vector<SlotHolder>> holders = slot_holders(place);
    REQUIRE(holders);
    std::vector<int> numbers;
    for (const SlotHolder &h : *holders)
        if (h.held) numbers.push_back(h.number);
    return numbers;
}

// A process that has a slot and sleeps; `before` runs with the slot.
template <class Before> pid_t holder(const Place &place, int limit, Before before) {
    return scratch::sleeper([&] {
        static Slots kept;
        Result<Slots> got = ask(place, limit, Deadline::none(), "holder");
        if (!got) return false;
        kept = std::move(*got);
        return before(kept);
    });
}
inline pid_t holder(const Place &place, int limit) {
    return holder(place, limit, [](Slots &) { return true; });
}

inline bool waits_for_it(const Place &place, int limit) {
    const Result<Slots> got = ask(place, limit, Deadline::never());
    return bool(got);
}

}  // namespace lock_bench
