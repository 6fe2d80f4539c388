#pragma once
// The accepted certificates, kept for a start while the scheduler is away: the file `members` in the backup's
// directory, with a line `HOST KEY` for each.
#include <string>

#include "backupd/core/state.h"
#include "base/status.h"

namespace dcs::backup {

// Empty if there is no such file. Fails if it cannot be read or is invalid.
Result<Members> read_members(const std::string &directory);
// Atomic: after a power failure the file is the old or the new one.
Status write_members(const std::string &directory, const Members &members);

}  // namespace dcs::backup
