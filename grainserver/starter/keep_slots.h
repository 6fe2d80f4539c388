#pragma once
// The process of the slot keeper (launcher/slot_keeper.h).
#include <string>

#include <sys/types.h>

#include "base/files.h"
#include "grainserver/starter/cgroups.h"

namespace dcs::starter {

// `grains`: path of the directory that contains the grains' directories. `sibling`: a child of the caller's parent.
// `socket` receives the launcher's end.
Result<pid_t> start_keeper(const std::string &grains, const Cgroups &cgroups, bool sibling, Fd &socket);

}  // namespace dcs::starter
