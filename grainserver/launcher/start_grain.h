#pragma once
// Has a grain started as a process by the starter, with a slot, a control group and indices of resources.
#include <string>
#include <vector>

#include <sys/types.h>

#include "base/resources.h"
#include "base/status.h"
#include "grainserver/files/grain_record.h"
#include "grainserver/launcher/leaves.h"
#include "grainserver/launcher/slot_keeper.h"
#include "grainserver/launcher/start_outcome.h"
#include "locks/counted_slots.h"

namespace dcs::launcher {

struct Place {
    int base = -1;      // descriptor of DIR
    int grains = -1;    // descriptor of DIR/grains
    std::string path;   // absolute path of DIR/grains: DCS_GRAIN_DIR is below it
    std::string slots;  // directory of the slots' lock file
    Leaves *leaves = nullptr;
    SlotKeeper *keeper = nullptr;
    starter::StarterClient *starter = nullptr;
};

// A slot, and the name under which the keeper has its copy.
struct HeldSlot {
    locks::Slots slot;
    std::string kept_as;
};

// `dir` has a `launch` record and `input`. A directory with `pid` or `exit` is not changed (have_it). On
// failure the directory is unchanged. `held`: the slot of a grain that has ended, or none: then one is taken. It is the
// grain's as long as that has a process; otherwise the caller hands it on or releases it. `taken`: indices of grains
// that have processes.
StartOutcome start_grain(const Place &place, const std::string &dir, int slot_limit, HeldSlot &held,
                         const std::vector<const Indices *> &taken);
// Whether it has been, by any launcher.
bool was_started(const Place &place, const std::string &dir);

// Whether start_grain could run it, slots aside. Takes the same steps, but the kernel stops the process
// right after its exec, before its first instruction, and it is killed. `started` without pid
// and slot: yes.
StartOutcome prove_grain(const Place &place, const std::string &dir);

}  // namespace dcs::launcher
