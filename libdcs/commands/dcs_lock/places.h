#pragma once
// The lock files that a NAME may refer to, and the list of all.
#include <vector>

#include "locks/counted_slots.h"
#include "locks/files/queue.h"
#include "options.h"

namespace dcs::lock_command {

struct Seen {
    locks::Place place;
    bool counted = false;  // counted slots, else an atom
    Status trouble;        // why it could not be read
    locks::AtomState atom;
    std::vector<locks::Owner> unrecorded;  // who has the atom, by the kernel, if the record names no holder
    std::vector<locks::SlotHolder> slots;  // held ones
    std::vector<locks::Waiter> waiting;
};

// For a NAME: its atom and its slots, if they exist; without a NAME: all in lock_directory(), by name.
Result<std::vector<Seen>> look_around(const locks::World &world, const Options &options);
Seen look_closely(const locks::World &world, locks::Place place, bool counted);

}  // namespace dcs::lock_command
