#pragma once
// Is this slot of a directory of slots held by a process?
#include "locks/counted_slots.h"

namespace bench {

inline bool slot_held(const std::string &directory, int number) {
    dcs::locks::Place place;
    place.path = directory + "/slots";
    const auto holders = dcs::locks::slot_holders(place);
    if (!holders) return false;
    for (const dcs::locks::SlotHolder &h : *holders)
        if (h.number == number) return h.held;
    return false;
}

}  // namespace bench
