#pragma once
// Makes the copy of the store a scheduler's state directory (docs/BACKUP.md). Not while the backup runs.
#include <string>

#include "base/status.h"

namespace dcs::backup {

struct Promoted {
    std::uint64_t epoch = 0;
    // The last turn of the copy, including those of interrupted attempts. 0: the promotion was complete before, except
    // for its last step.
    std::uint64_t turn = 0;
    std::string kept;  // the new name of the former state directory; empty: there was none
};
// `directory`: the backup's. `state`: the scheduler's state directory; if it is on another file system, the copy is
// copied, and remains. refused: nothing has changed. After any other failure the copy has a later epoch than the former
// scheduler, and the same call, repeated, completes the promotion, also if it was interrupted.
Result<Promoted> promote(const std::string &directory, const std::string &state);

}  // namespace dcs::backup
