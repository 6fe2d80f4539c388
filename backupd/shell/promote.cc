#include "backupd/shell/promote.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backupd/shell/mirror_link.h"
#include "base/failpoint.h"
#include "store/disk_posix.h"

namespace dcs::backup {
namespace {

bool there(const std::string &path) {
    struct stat st = {};
    return ::lstat(path.c_str(), &st) == 0;
}

Status sync_directory(const std::string &path) {
    const int fd = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const bool done = fd >= 0 && ::fsync(fd) == 0;
    const int why = errno;
    if (fd >= 0) ::close(fd);
    return done ? Status::ok() : fail_errno(Code::io_error, "syncing " + path, why);
}

Status move(const std::string &from, const std::string &to) {
    if (::rename(from.c_str(), to.c_str()) == 0) return Status::ok();
    const int why = errno;
    if (why == EXDEV)
        return fail(Code::invalid, "the copy in " + from + " and " + to + " are on different file systems: name a state "
                                   "directory beside the copy, or copy it there by hand (cp -a) and start a scheduler on it");
    return fail_errno(Code::io_error, "moving " + from + " to " + to, why);
}

std::string parent(const std::string &path) { return path.substr(0, path.rfind('/')); }

// The state directory that is there, an old one or a broken one, is kept: nobody knows what it is good for yet.
Status set_aside(const std::string &state, std::uint64_t epoch, std::string &kept) {
    if (!there(state)) return Status::ok();
    if (::rmdir(state.c_str()) == 0) return Status::ok();  // it was empty
    kept = state + ".before-epoch-" + std::to_string(epoch);
    for (int n = 2; there(kept); ++n)
        kept = state + ".before-epoch-" + std::to_string(epoch) + "." + std::to_string(n);
    return move(state, kept);
}

}  // namespace

Result<Promoted> promote(const std::string &directory, const std::string &state) {
    auto places = open_mirror_places(directory);
    if (!places) return places.status();
    auto copy = Copy::open(*places->disk, {});
    if (!copy) return copy.status();
    Promoted done;
    const store::Identity before = (*copy)->identity();
    const bool noted = places->seen.name == before.name;
    done.epoch = std::max(before.epoch, noted ? places->seen.epoch : 0) + 1;
    const auto slot = (*copy)->promote(done.epoch);
    if (!slot) return slot.status();
    done.turn = (*copy)->turn();
    copy->reset();
    failpoint("mirror.promote.committed");
    if (Status s = write_seen(directory, {before.name, done.epoch}); !s) return s;
    failpoint("mirror.promote.noted");
    const std::string mirror = directory + "/mirror", from = mirror + "/" + *slot;
    if (there(mirror + "/library"))
        if (Status s = move(mirror + "/library", from + "/library"); !s) return s;
    failpoint("mirror.promote.library");
    const std::string above = parent(state);
    if (::mkdir(above.c_str(), 0700) != 0 && errno != EEXIST) return fail_errno(Code::io_error, "making " + above, errno);
    if (Status s = set_aside(state, done.epoch, done.kept); !s) return s;
    failpoint("mirror.promote.set_aside");
    // The new scheduler's copy is yet to be made: nothing waits for it before it is there.
    if (::unlink((above + "/attached").c_str()) != 0 && errno != ENOENT)
        return fail_errno(Code::io_error, "removing " + above + "/attached", errno);
    if (Status s = sync_directory(from); !s) return s;
    if (Status s = move(from, state); !s) return s;
    failpoint("mirror.promote.moved");
    if (Status s = sync_directory(above); !s) return s;
    if (::unlink((mirror + "/current").c_str()) != 0) return fail_errno(Code::io_error, mirror + "/current", errno);
    if (Status s = sync_directory(mirror); !s) return s;
    return done;
}

}  // namespace dcs::backup
