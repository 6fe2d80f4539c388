#pragma once
// The process that holds a lock on behalf of a shell script. The script cannot: a lock belongs to an open file
// description, and a program that the script calls has ended before the next line.
#include <csignal>

#include "locks/adaptive_lock.h"
#include "locks/counted_slots.h"

namespace dcs::lock_command {

constexpr int keeper_done = SIGUSR1, keeper_failed = SIGUSR2;  // sent by `put`

// Starts the keeper, which records `script` as the holder, ends the script's tree at the limit of `lock`, and
// releases the lock at a signal or at the end of the script. Returns when it is ready; the caller has no lock then.
Status begin_keeping(const locks::World &world, const ProcessIdentity &script, const locks::KillGrace &grace,
                     locks::AdaptiveLock &lock, locks::Slots &slots);

}  // namespace dcs::lock_command
