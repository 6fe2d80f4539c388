#pragma once
// A process as stored in the blocks of a lock file: 20 bytes.
#include "locks/files/block.h"
#include "process/identity.h"

namespace dcs::locks {

template <class Io, class Process> void process_fields(Io &io, Process &p) { io(p.pid, p.start_ticks, p.pidfs_inode); }

}  // namespace dcs::locks
