#pragma once
// Whether a scheduler's directory has the state that belongs there. Its one file start-ID gets a new name at each
// start, and content once a store was open:
// - A copy that was unpacked over an older state leaves there what the copy no longer has: sessions that were removed
//   would be active again. Then there are two such files.
// - An empty state/ beside one with content is a disk that is not mounted, or a copy that was not promoted: with an
//   empty store the scheduler would refuse all hosts, which then end their grains.
#include <string>

#include "base/fd.h"
#include "base/status.h"

namespace dcs::shell {

// By a scheduler that holds the lock of `directory`, before it makes anything else there. The file, which stays open.
// refused: the state is none that it may continue.
Result<Fd> take_state(const std::string &directory);
// Once the store is open.
Status note_store(const Fd &mark);

}  // namespace dcs::shell
