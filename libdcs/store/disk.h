#pragma once
// The file system operations that the backing store uses, and no others. Implementations: disk_posix, and for tests
// tests/support/sim_disk, which loses unsynced data, tears writes, fills up and fails at the n-th call.
//
// Paths are relative to the state directory, with '/' between components, never "..".
// Durability, complete list of guarantees:
//   sync_file(p)  the present content and length of the file named p survive a power failure
//   sync_dir(d)   the present set of names in d survives
//   sync_all()    both, for the whole state directory (one call instead of thousands)
// Nothing else is durable, in any order. If a sync_* call fails with Code::io_error, the state of the file is
// unknown: never retry the sync, end the process.
#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/status.h"

namespace dcs::store {

class Disk {
public:
    virtual ~Disk() = default;
    // Creates a file with this content; fails if the name exists. Not synced. After a failure a part of
    // it may exist under that name.
    virtual Status create(const std::string &path, std::string_view bytes) = 0;
    // Truncates the existing (or new) file to `length`, then appends. Not synced. A file shorter
    // than `length` is an error (io_error): recorded bytes are missing.
    virtual Status truncate_append(const std::string &path, std::uint64_t length, std::string_view bytes) = 0;
    // Writes within an existing file and never beyond its end (io_error). Not synced. For a file that is written
    // repeatedly: an implementation may keep it open until it is removed.
    virtual Status overwrite(const std::string &path, std::uint64_t offset, std::string_view bytes) = 0;
    // Replaces the content of an existing file in place: whatever of the old and the new content was not synced may be
    // lost, in any mixture. Not synced. not_found if there is no such file.
    virtual Status rewrite(const std::string &path, std::string_view bytes) = 0;
    // Content of the range; short at the end of the file. not_found if there is no such file.
    virtual Result<std::string> read(const std::string &path, std::uint64_t offset, std::uint64_t max) = 0;
    // The same into memory that the caller has: how many bytes.
    virtual Result<std::uint64_t> read_into(const std::string &path, std::uint64_t offset, std::span<char> room) {
        const Result<std::string> bytes = read(path, offset, room.size());
        if (!bytes) return bytes.status();
        std::copy(bytes->begin(), bytes->end(), room.begin());
        return std::uint64_t{bytes->size()};
    }
    virtual Result<std::uint64_t> size(const std::string &path) = 0;  // not_found
    // An existing file, for base/large_file.h. Code::refused: this disk has no descriptors.
    virtual Result<Fd> open_large(const std::string &, bool /* to write */) {
        return fail(Code::refused, "not a file system");
    }
    virtual Status rename(const std::string &from, const std::string &to) = 0;
    // A second name for the same file; fails if `to` exists. (In POSIX, renaming one name of a file over another
    // name of the same file succeeds and does nothing.)
    virtual Status link(const std::string &from, const std::string &to) = 0;
    virtual Status remove(const std::string &path) = 0;          // absent: ok
    virtual Result<bool> make_dir(const std::string &path) = 0;  // true: created; false: it existed
    virtual Status remove_dir(const std::string &path) = 0;      // absent: ok; not empty: Code::refused
    // Sorted; directories end in '/'. not_found if there is no such directory.
    virtual Result<std::vector<std::string>> list(const std::string &path) = 0;
    virtual Status sync_file(const std::string &path) = 0;
    virtual Status sync_dir(const std::string &path) = 0;
    virtual Status sync_all() = 0;
    // Begins to write back what the file has, so that a later sync_file() takes less time. Nothing is durable by it.
    virtual void write_back(const std::string &) {}
    // Whether sync_all() reports lost bytes. If not (Linux before 5.8), the
    // store syncs file by file.
    virtual bool sync_all_reports() const { return true; }
    virtual Result<std::uint64_t> free_bytes() = 0;
    // How many more files it can hold (inodes). Many file systems have no limit.
    virtual Result<std::uint64_t> free_files() { return UINT64_MAX; }
};

}  // namespace dcs::store
