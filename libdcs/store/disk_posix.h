#pragma once
// The Disk on POSIX: files below one directory, each opened from its descriptor (path_opener.h), so that no symbolic
// link and no renamed parent leads elsewhere. Owner-only modes. Between calls only the directory's descriptor and two
// spare ones stay open; the spare ones are released for a moment when the process has run out of descriptors.
#include <memory>
#include <string>

#include "base/status.h"
#include "store/disk.h"

namespace dcs::store {

// The directory must exist. Fails with not_found, refused (no permission; a network file system,
// which cannot guarantee what sync promises) or limit. One thread at a time. `one_call` false: as on
// a kernel without openat2.
Result<std::unique_ptr<Disk>> open_posix_disk(const std::string &directory, bool one_call = true);

// Whether open_posix_disk accepts a file system, by the magic number of statfs(2).
Status check_file_system(long magic, const std::string &directory);

}  // namespace dcs::store
