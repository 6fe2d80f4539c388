#pragma once
// The lock files that a NAME may mean, and all that there are.
#include <vector>

#include "locks/counted_slots.h"
#include "locks/queue.h"
#include "options.h"

namespace dcs::lock_command {

struct Seen {
    locks::Place place;
    bool counted = false;   // slots; else an atom
    Status trouble;         // what kept us from looking
    locks::AtomState atom;
    std::vector<locks::SlotHolder> slots;  // held ones
    std::vector<locks::Waiter> waiting;
};

// Of NAME: its atom and its slots, as far as they exist; of no NAME: all in lock_directory(), by name.
Result<std::vector<Seen>> look_around(const locks::World &world, const Options &options);
Seen look_closely(const locks::World &world, locks::Place place, bool counted);

}  // namespace dcs::lock_command
