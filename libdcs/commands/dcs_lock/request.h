#pragma once
// Translates options into requests to the lock library.
#include <vector>

#include "locks/counted_slots.h"
#include "options.h"

namespace dcs::lock_command {

Result<locks::Place> atom_place(const Options &options);
// The place of NAME's counted slots: for a path the path itself.
Result<locks::Place> slots_place(const Options &options);
// -j and -l, in the order of the command line; -j first.
Result<std::vector<locks::SlotWish>> slot_wishes(const Options &options);
locks::Deadline deadline_of(const Options &options);
Result<locks::LockRequest> lock_request(const locks::World &world, const Options &options,
                                        const locks::Deadline &until);

// DCS_LOCK_NOW, set by `dcs_lock pass`: the start of the pass, "WALL,MONO,BOOT,BOOTID". All 0: not set.
Result<locks::Moment> pass_of_environment(const locks::World &world);
std::string pass_text(const locks::World &world);

}  // namespace dcs::lock_command
