#pragma once
// Whose certificates count, kept for a start while the scheduler is away: the file `members` of the backup's directory,
// a line `HOST KEY` for each.
#include <string>

#include "backupd/core/state.h"
#include "base/status.h"

namespace dcs::backup {

// Empty if there is no such file. Fails if it cannot be read or holds anything else.
Result<Members> read_members(const std::string &directory);
// After a power failure there is the old file or the new one.
Status write_members(const std::string &directory, const Members &members);

}  // namespace dcs::backup
