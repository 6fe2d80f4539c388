#pragma once
// Everything the backing store may ask of a file system, and nothing else. One real twin
// (disk_posix), one for tests (tests/support/sim_disk) that loses what was not synced, tears
// writes, fills up and fails at the n-th call.
//
// Paths are relative to the state directory, with '/' between components, never "..".
// Durability, the only promises there are:
//   sync_file(p)  the content and length of the file that p names now survive a power failure
//   sync_dir(d)   the set of names in d as of now survives
//   sync_all()    both, for the whole state directory (one call instead of thousands)
// Nothing else is durable, in any order. Whatever fails with Code::io_error from a sync_* call
// leaves the file in doubt: never retry the sync, end the process (SPEC B4 in docs/BACKING_STORE.md).
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace dcs::store {

class Disk {
public:
    virtual ~Disk() = default;
    // New file with this content; fails if the name exists. Not synced.
    virtual Status create(const std::string &path, std::string_view bytes) = 0;
    // Truncates the existing (or new) file to `length`, then appends. Not synced. A file shorter
    // than `length` is an error (io_error): bytes that were promised are missing.
    virtual Status truncate_append(const std::string &path, std::uint64_t length, std::string_view bytes) = 0;
    // Content of the range; short at the end of the file. not_found if there is no such file.
    virtual Result<std::string> read(const std::string &path, std::uint64_t offset, std::uint64_t max) = 0;
    virtual Result<std::uint64_t> size(const std::string &path) = 0;       // not_found
    virtual Status rename(const std::string &from, const std::string &to) = 0;
    virtual Status remove(const std::string &path) = 0;                    // absent: ok
    virtual Status make_dir(const std::string &path) = 0;                  // existing: ok
    virtual Status remove_dir(const std::string &path) = 0;                // empty one; absent: ok
    virtual Result<std::vector<std::string>> list(const std::string &path) = 0;  // sorted; directories end in '/'
    virtual Status sync_file(const std::string &path) = 0;
    virtual Status sync_dir(const std::string &path) = 0;
    virtual Status sync_all() = 0;
    virtual Result<std::uint64_t> free_bytes() = 0;
};

}  // namespace dcs::store
