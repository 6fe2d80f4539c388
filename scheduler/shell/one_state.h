#pragma once
// A copy of a scheduler's directory that was unpacked over an older one leaves there what the copy no longer has: sessions
// that were removed would be active again. So the directory has one file start-ID, which each start gives a new name: where
// two states were mixed there are two.
#include <string>

#include "base/status.h"

namespace dcs::shell {

// By a scheduler that holds the lock of `directory`. refused: there are files of two states.
Status mark_as_one_state(const std::string &directory);

}  // namespace dcs::shell
