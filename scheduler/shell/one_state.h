#pragma once
// Whether a scheduler's directory has the state that belongs there. Its one file start-ID gets a new name at each
// start, and content once a store was open; so does one in its state/, then.
// - A copy that was unpacked over an older state, or an older one over a newer, leaves there what the copy does not
//   have: sessions that were removed would be active again. Then one of the two directories has two such files.
// - An empty state/ beside one with content is a disk that is not mounted, or a copy that was not promoted: with an
//   empty store the scheduler would refuse all hosts, which then end their grains.
#include <string>

#include "base/fd.h"
#include "base/status.h"

namespace dcs::shell {

struct Mark {
    Fd file;  // stays open
    std::string name;
};
// By a scheduler that holds the lock of `directory`, before it makes anything else there.
// refused: the state is none that it may continue.
Result<Mark> take_state(const std::string &directory);
// Once the store in `state` is open.
Status note_store(const Mark &mark, const std::string &state);

}  // namespace dcs::shell
