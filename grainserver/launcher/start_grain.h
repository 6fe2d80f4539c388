#pragma once
// Starts a grain as a process. As much as possible is checked before the fork; errors
// between fork and exec are received through a pipe and described in words.
#include <string>
#include <vector>

#include <sys/types.h>

#include "base/resources.h"
#include "base/status.h"
#include "grainserver/files/grain_record.h"
#include "grainserver/launcher/leaves.h"
#include "grainserver/launcher/prepared.h"
#include "grainserver/launcher/slot_keeper.h"
#include "grainserver/launcher/start_outcome.h"
#include "locks/counted_slots.h"

namespace dcs::launcher {

struct Place {
    int base = -1;      // descriptor of DIR
    int grains = -1;    // descriptor of DIR/grains
    std::string path;   // absolute path of DIR/grains: DCS_GRAIN_DIR is below it
    std::string slots;  // directory of the slots' lock file
    std::string boot_id;
    Leaves *leaves = nullptr;
    SlotKeeper *keeper = nullptr;
    Prepared *prepared = nullptr;
    bool gpus_by_file = true;  // gpu 0 is /dev/nvidia0; false: CUDA's number 0, whatever file that is
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

// Lowers the weight of the grain's session against other sessions, if the kernel groups them (nice alone has no
// effect across sessions then). False: refused for now; repeat after a while.
bool lower_session_priority(pid_t pid);

}  // namespace dcs::launcher
