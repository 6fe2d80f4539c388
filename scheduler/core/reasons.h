#pragma once
// Every reason for which a grain is where it is, with the words that people see. docs/SCHEDULING.md
// has the same table; a test compares them.
#include <cstdint>

#include "scheduler/state/unrecorded.h"

namespace dcs::core {

enum class Why : std::uint8_t {
    // it is not waiting
    finished,
    failed,
    killed,
    running,
    starting,    // the lease was sent, the server has not confirmed it
    staged,      // tentative: it waits there for the slot of a younger session's grain
    displaced,   // such a grain
    starved,     // it runs, and others take the processors
    unrecorded,  // it has ended, and there is no room for its result
    session_closed,
    damaged,
    // it waits, whatever the hosts do
    no_hosts,
    user_quota,
    user_denied,
    older_first,
    fewer_first,  // fair share
    earlier_first,
    // of a host, until a setting changes
    other_class,
    no_binary,  // no program for its binary class
    too_old,    // its server's release cannot carry what the grain demands
    not_permitted,
    no_slots,
    no_program,    // nogo, because of it
    cannot_start,  // nogo, because of what it asks for itself
    failed_there,  // nogo, because of it
    host_limit,    // nogo, because it broke a limit of the server there, or of another host whose limit is no higher
    nogo,          // nogo, and it is not remembered why
    too_few_cores,
    too_little_memory,
    memory_limited,
    no_resource,
    // of a host, for now
    drained,
    no_job,  // a pilot without a job
    never_called,
    not_connected,
    delinquent,
    being_checked,
    dead,
    too_open,         // it confines grains less than the host table demands
    host_shut,        // by its owner's work, or for want of memory
    program_missing,  // for some other grain, a short while ago
    held_back,
    resting,  // everywhere: it came back too often
    busy,
    usurps,  // busy, and it takes the place of a younger session's grain when the slice ends
    trouble,
    probation,
    cores_in_use,
    thrash,
    memory_in_use,
    resource_in_use,
    kept_for_earlier,  // a resource, of which there is enough
    others_first,      // a free slot, for which another grain comes first
    takes_it
};
inline constexpr int whys = static_cast<int>(Why::takes_it) + 1;

struct Reason {
    const char *word, *sentence, *hint;  // the hint may be empty
};
const Reason &reason_of(Why why);
const char *unrecorded_text(NoRoom why);

// No grain of this kind will ever run there as things are configured.
constexpr bool for_ever(Why why) { return why >= Why::other_class && why <= Why::no_resource; }

}  // namespace dcs::core
