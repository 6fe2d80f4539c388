#pragma once
// One grain becomes a process. Everything that can fail before the fork fails there; what fails
// between fork and exec comes back through a pipe and is told in words.
#include <string>

#include <sys/types.h>

#include "base/status.h"
#include "grainserver/files/grain_record.h"
#include "grainserver/launcher/cgroups.h"
#include "grainserver/launcher/slot_keeper.h"
#include "locks/counted_slots.h"

namespace dcs::launcher {

struct Place {
    int base = -1;        // descriptor of DIR
    int grains = -1;      // descriptor of DIR/grains
    std::string path;     // absolute path of DIR/grains: DCS_GRAIN_DIR is below it
    std::string slots;    // directory of the slots' lock file
    std::string boot_id;
    const Cgroups *cgroups = nullptr;
    SlotKeeper *keeper = nullptr;
};

struct StartOutcome {
    enum class Kind : std::uint8_t { started, have_it, failed } kind = Kind::failed;
    pid_t pid = 0;            // started
    locks::Slots slot;        // started: keep it as long as the grain has a process
    files::Limits limits;     // started; and which of them its control group sees to, if it has one
    bool in_group = false, memory_by_group = false, processes_by_group = false;
    files::Account account;   // started: as its record says
    Code code = Code::ok;     // failed. not_found, invalid: see wire::LaunchResult; others: the host's trouble
    bool again = false;       // failed: no slot is free just now
    std::string text;         // failed: in words
};

// `dir` has a `launch` record and `input`. A directory with `pid` or `exit` is left alone (have_it). On
// failure nothing is left behind but the directory as it was.
StartOutcome start_grain(const Place &place, const std::string &dir, int slot_limit);

// Would start_grain run it, slots aside? Everything is done as there, but the process is stopped
// by the kernel right after its exec, before its first instruction, and killed. `started` without pid
// and slot: yes.
StartOutcome prove_grain(const Place &place, const std::string &dir);

// Weight of the grain's session against other sessions, where the kernel groups them (nice alone does
// nothing across sessions there). False: refused for now, try again after a while.
bool lower_session_priority(pid_t pid);

}  // namespace dcs::launcher
