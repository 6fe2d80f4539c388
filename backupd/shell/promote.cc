#include "backupd/shell/promote.h"

#include <algorithm>
#include <cerrno>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backupd/shell/mirror_link.h"
#include "base/failpoint.h"
#include "base/files.h"
#include "base/limits.h"
#include "base/require.h"
#include "store/disk_posix.h"

namespace dcs::backup {
namespace {

bool there(const std::string &path) {
    struct stat st = {};
    return ::lstat(path.c_str(), &st) == 0;
}

Status move(const std::string &from, const std::string &to) {
    if (::rename(from.c_str(), to.c_str()) == 0) return Status::ok();
    const int why = errno;
    if (why == EXDEV)
        return fail(Code::invalid, from + " and " + to +
                                       " are on different file systems: name a state directory "
                                       "beside the copy, or copy it with cp -a");
    return fail_errno(Code::io_error, "cannot move " + from + " to " + to, why);
}

std::string parent(const std::string &path) { return path.substr(0, path.rfind('/')); }

// Keeps an existing state directory, even a damaged one, because it may still be needed.
Status set_aside(const std::string &state, std::uint64_t epoch, std::string &kept) {
    if (!there(state)) return Status::ok();
    if (::rmdir(state.c_str()) == 0) return Status::ok();  // it was empty
    kept = state + ".before-epoch-" + std::to_string(epoch);
    for (int n = 2; there(kept); ++n) kept = state + ".before-epoch-" + std::to_string(epoch) + "." + std::to_string(n);
    return move(state, kept);
}

// Whether an earlier attempt was interrupted after the copy was moved.
bool moved_already(const std::string &mirror, const std::string &state) {
    const auto current = read_file(AT_FDCWD, mirror + "/current", limits::name_bytes);
    const std::string slot = current ? current->substr(0, current->find('\n')) : "";
    return !slot.empty() && !there(mirror + "/" + slot) && there(state + "/format");
}

Status forget_copy(const std::string &mirror) {
    if (::unlink((mirror + "/current").c_str()) != 0) return fail_errno(Code::io_error, mirror + "/current", errno);
    return sync_directory(mirror);
}

}  // namespace

Result<Promoted> promote(const std::string &directory, const std::string &state) {
    auto places = open_mirror_places(directory);
    if (!places) return places.status();
    const std::string mirror = directory + "/mirror";
    if (places->seen.name != 0 && moved_already(mirror, state)) {
        if (Status s = forget_copy(mirror); !s) return s;
        return Promoted{places->seen.epoch, 0, ""};
    }
    auto copy = Copy::open(*places->disk, {});
    if (!copy) return copy.status();
    const bool none = !(*copy)->whole() && (*copy)->spoilt().empty();
    if (none && places->seen.name != 0 && there(state + "/format")) return Promoted{places->seen.epoch, 0, ""};
    Promoted done;
    const store::Identity before = (*copy)->identity();
    const bool noted = places->seen.name == before.name;
    done.epoch = std::max(before.epoch, noted ? places->seen.epoch : 0) + 1;
    DCS_REQUIRE(done.epoch > before.epoch, "a promotion begins a later epoch");
    done.turn = (*copy)->turn();
    const auto slot = (*copy)->promote(done.epoch);
    if (!slot) return slot.status();
    copy->reset();
    failpoint("mirror.promote.committed");
    if (Status s = write_seen(directory, {before.name, done.epoch}); !s) return s;
    failpoint("mirror.promote.noted");
    const std::string from = mirror + "/" + *slot;
    if (there(mirror + "/library"))
        if (Status s = move(mirror + "/library", from + "/library"); !s) return s;
    failpoint("mirror.promote.library");
    const std::string above = parent(state);
    if (Status s = make_directory(above); !s) return s;
    if (Status s = set_aside(state, done.epoch, done.kept); !s) return s;
    failpoint("mirror.promote.set_aside");
    // The new scheduler has no copy yet, so commits must not wait for one.
    if (::unlink((above + "/attached").c_str()) != 0 && errno != ENOENT)
        return fail_errno(Code::io_error, "cannot remove " + above + "/attached", errno);
    if (Status s = sync_directory(from); !s) return s;
    if (Status s = move(from, state); !s) return s;
    failpoint("mirror.promote.moved");
    if (Status s = sync_directory(above); !s) return s;
    if (Status s = forget_copy(mirror); !s) return s;
    return done;
}

}  // namespace dcs::backup
