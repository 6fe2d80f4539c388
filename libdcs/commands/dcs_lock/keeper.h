#pragma once
// The process that has a lock for a shell script, which cannot have one itself: a lock belongs to an open file,
// and what a script calls has ended before the next line.
#include <csignal>

#include "locks/adaptive_lock.h"
#include "locks/counted_slots.h"

namespace dcs::lock_command {

constexpr int keeper_done = SIGUSR1, keeper_failed = SIGUSR2;  // `put` to the keeper

// Starts the keeper, which records `script` as the holder, ends the script's tree at the limit of `lock`, and
// releases when it is told to or the script has ended. Returns when all that is so; the caller has no lock then.
Status begin_keeping(const locks::World &world, const ProcessIdentity &script, const locks::KillGrace &grace,
                     locks::AdaptiveLock &lock, locks::Slots &slots);

}  // namespace dcs::lock_command
