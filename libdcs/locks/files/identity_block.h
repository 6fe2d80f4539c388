#pragma once
// A process as stored in the blocks of a lock file: 20 bytes.
#include "locks/files/block.h"
#include "process/identity.h"

namespace dcs::locks {

template <std::size_t Bytes> void put(Block<Bytes> &b, const ProcessIdentity &p) {
    b.u32(static_cast<std::uint32_t>(p.pid));
    b.u64(p.start_ticks);
    b.u64(p.pidfs_inode);
}

template <std::size_t Bytes> ProcessIdentity get_process(Block<Bytes> &b) {
    ProcessIdentity p;
    p.pid = static_cast<pid_t>(b.u32());
    p.start_ticks = b.u64();
    p.pidfs_inode = b.u64();
    return p;
}

}  // namespace dcs::locks
