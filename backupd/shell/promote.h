#pragma once
// The copy of the store becomes a scheduler's state directory (docs/BACKUP.md). Not while the backup runs.
#include <string>

#include "base/status.h"

namespace dcs::backup {

struct Promoted {
    std::uint64_t epoch = 0;
    // The last turn that the copy had, with those of attempts that were interrupted. 0: it was done before, but for its
    // end.
    std::uint64_t turn = 0;
    std::string kept;  // where the state directory that was there lies now; empty: there was none
};
// `directory`: the backup's. `state`: the scheduler's state directory, on the same file system. The epoch is raised and
// noted before anything moves; interrupted anywhere, it can be repeated.
Result<Promoted> promote(const std::string &directory, const std::string &state);

}  // namespace dcs::backup
