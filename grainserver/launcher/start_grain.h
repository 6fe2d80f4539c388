#pragma once
// Has a grain started as a process by the starter, with a slot, a control group and indices of resources.
#include <set>
#include <string>
#include <vector>

#include <sys/types.h>

#include "base/resources.h"
#include "base/status.h"
#include "grainserver/files/grain_record.h"
#include "grainserver/launcher/slot_keeper.h"
#include "grainserver/starter/become_grain.h"
#include "grainserver/starter/starter_client.h"
#include "locks/counted_slots.h"

namespace dcs::launcher {

using starter::Cgroups, starter::Leaf;

// The leaves of running grains, and spare ones: a leaf without processes and without a limit of memory goes to the next
// grain with the same limit of processes and the same devices. To make and to remove one takes the kernel longer than
// to start a process.
class Leaves {
public:
    Leaves(const Cgroups &cgroups, starter::StarterClient &starter) : cgroups_(cgroups), starter_(starter) {}
    // A spare one, or a new one with the name of the grain's directory.
    Leaf take(const std::string &dir, const files::Limits &limits, const starter::Devices &denied = {});
    // The devices that it must not open, as far as its control group can do that.
    starter::Devices denied_to(const files::LaunchRecord &launch, const GivenResources &given) const {
        return starter::denied_to(cgroups_, launch, given);
    }
    // The grain has ended. False: processes are left in it, and it stays as it is.
    bool give_back(Leaf &leaf);
    // Its grain did not start. False: processes are left in it.
    bool remove(Leaf &leaf);
    void remove_spares();
    bool any_spare() const { return !spares_.empty(); }

private:
    const Cgroups &cgroups_;
    starter::StarterClient &starter_;
    std::vector<Leaf> spares_;
    std::set<std::string> names_;  // of all that exist: no two grains ever share a leaf
    unsigned next_ = 1;
};

// What became of a start; the causes of one that failed, and the words for those who read them.
struct StartOutcome {
    enum class Kind : std::uint8_t { started, have_it, failed } kind = Kind::failed;
    pid_t pid = 0;              // started
    bool low_priority = false;  // started: its session has low weight already
    files::Limits limits;       // started
    Leaf leaf;                  // started: its control group, if it has one, and which limits that enforces
    files::Account account;     // started: as in its record
    Code code = Code::ok;       // failed. not_found, invalid: see wire::LaunchResult; others: an error of the host
    Indices indices;            // started: of resources, that are its own
    bool again = false;         // failed: no slot is free just now, or too few indices of a resource
    bool lacks_indices = false;
    std::string text;  // failed: the reason
};

StartOutcome failed(Code code, std::string text, bool again = false);
// What the child reported.
StartOutcome told(const starter::Failure &failure, const files::LaunchRecord &launch);

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
