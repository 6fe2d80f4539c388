#pragma once
// The real Disk: files below one directory, each reached anew from its descriptor (beneath.h), so
// that no symbolic link and no renamed parent leads anywhere else. Owner-only modes. No descriptor
// stays open between calls but the directory's own and two spare ones, which are given up for a
// moment when the process has run out.
#include <memory>
#include <string>

#include "base/status.h"
#include "store/disk.h"

namespace dcs::store {

// The directory must exist. Fails with not_found, refused (no permission; a network file system,
// which cannot keep the promises of sync) or limit. Threads: one at a time. `one_call` false: as on
// a kernel without openat2.
Result<std::unique_ptr<Disk>> open_posix_disk(const std::string &directory, bool one_call = true);

// What open_posix_disk thinks of a file system, by the magic number of statfs(2).
Status check_file_system(long magic, const std::string &directory);

}  // namespace dcs::store
