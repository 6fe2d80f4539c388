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
#include "daemon/privileges.h"
#include "store/copy.h"
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
    const bool mounted = why == EBUSY || why == EXDEV;
    return fail_errno(Code::io_error,
                      "cannot move " + from + (mounted ? " (unmount it if it is a mount point)" : "") + " to " + to,
                      why);
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
    if (::unlink((mirror + "/current").c_str()) != 0 && errno != ENOENT)
        return fail_errno(Code::io_error, mirror + "/current", errno);
    return sync_directory(mirror);
}

Status remove_staged(const std::string &staged) { return remove_tree(AT_FDCWD, staged); }

Status unchanged(const Status &why) { return fail(Code::refused, why.text); }

// Whether names can be moved from one directory to the other: not to another file system.
Result<bool> moves(const std::string &from, const std::string &to) {
    const std::string probe = from + "/promote.probe", moved = to + "/promote.probe";
    const Fd file(::open(probe.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!file) return fail_errno(Code::io_error, "cannot write " + probe, errno);
    const int why = ::rename(probe.c_str(), moved.c_str()) == 0 ? 0 : errno;
    ::unlink(why == 0 ? moved.c_str() : probe.c_str());
    if (why != 0 && why != EXDEV) return fail_errno(Code::io_error, "cannot move " + probe + " to " + moved, why);
    return why == 0;
}

// The complete copy in another directory; `current` there is last.
Status stage(store::Disk &mirror, const std::string &slot, const std::string &staged) {
    Status s = remove_staged(staged);
    if (s) s = make_directory(staged);
    const auto disk = s ? store::open_posix_disk(staged, keeps_openat2()) : s;
    if (!disk) return disk.status();
    s = store::copy_tree(mirror, **disk, slot);
    const auto library = mirror.list("library");
    if (s && library) s = store::copy_tree(mirror, **disk, "library");
    else if (s && library.status().code != Code::not_found) s = library.status();
    if (s) s = store::sync_everything(**disk);
    if (s) s = (*disk)->create("current", slot + "\n");
    if (s) s = (*disk)->sync_file("current");
    if (s) s = (*disk)->sync_dir("");
    if (!s) (void)remove_staged(staged);
    return s ? s
             : fail(s.code,
                    "the copy and " + parent(staged) + " are on different file systems, and copying failed: " + s.text);
}

// The places of one promotion.
struct Promotion {
    const std::string directory, state;
    const store::Identity seen;
    std::string mirror;  // with the copy: the backup's, or that one's copy beside the state directory
    Promoted done;

    std::string above() const { return parent(state); }
    std::string staged() const { return state + ".promoting"; }

    // After a failure, as long as the copy is as it was.
    Status undo(const Status &why) const {
        Status s = done.kept.empty() ? Status::ok() : move(done.kept, state);
        const auto now = read_seen(directory);
        if (s && seen.name == 0) (void)::unlink((directory + "/epoch").c_str());
        else if (s && (!now || now->epoch != seen.epoch)) s = write_seen(directory, seen);
        return s ? unchanged(why) : fail(Code::io_error, why.text + "; " + s.text);
    }
    // What can be undone is done before the copy itself gets the epoch.
    Result<std::string> raise_epoch(Copy &copy) {
        const store::Identity before = copy.identity();
        done.epoch = std::max(before.epoch, seen.name == before.name ? seen.epoch : 0) + 1;
        DCS_REQUIRE(done.epoch > before.epoch, "a promotion begins a later epoch");
        done.turn = copy.turn();
        if (Status s = set_aside(state, done.epoch, done.kept); !s) return unchanged(s);
        failpoint("mirror.promote.set_aside");
        if (Status s = write_seen(directory, {before.name, done.epoch}); !s) return undo(s);
        failpoint("mirror.promote.noted");
        auto slot = copy.promote(done.epoch);
        if (!slot && slot.status().code == Code::refused) return undo(slot.status());
        failpoint("mirror.promote.committed");
        return slot;
    }
    // From here on only the same call, repeated, leads on.
    Status place(const std::string &slot) {
        if (mirror == staged())
            if (Status s = forget_copy(directory + "/mirror"); !s) return s;
        failpoint("mirror.promote.forgotten");
        const std::string from = mirror + "/" + slot;
        if (there(mirror + "/library"))
            if (Status s = move(mirror + "/library", from + "/library"); !s) return s;
        failpoint("mirror.promote.library");
        // The new scheduler has no copy yet, so commits must not wait for one.
        if (::unlink((above() + "/attached").c_str()) != 0 && errno != ENOENT)
            return fail_errno(Code::io_error, "cannot remove " + above() + "/attached", errno);
        if (Status s = sync_directory(from); !s) return s;
        if (Status s = move(from, state); !s) return s;
        failpoint("mirror.promote.moved");
        if (Status s = sync_directory(above()); !s) return s;
        return finish();
    }
    Status finish() {
        const Status s = forget_copy(mirror);
        return s && mirror == staged() ? remove_staged(staged()) : s;
    }
};

}  // namespace

Result<Promoted> promote(const std::string &directory, const std::string &state) {
    auto places = open_mirror_places(directory);
    if (!places) return unchanged(places.status());
    Promotion work{directory, state, places->seen, directory + "/mirror", {}};
    const Promoted before{places->seen.epoch, 0, ""};
    if (!there(work.mirror + "/current") && there(work.staged() + "/current")) {
        work.mirror = work.staged();
        auto disk = store::open_posix_disk(work.mirror, keeps_openat2());
        if (!disk) return unchanged(disk.status());
        places->disk = std::move(*disk);
    }
    if (places->seen.name != 0 && moved_already(work.mirror, state)) {
        const Status s = work.finish();
        return s ? Result<Promoted>(before) : s;
    }
    auto copy = Copy::open(*places->disk, {});
    if (!copy) return unchanged(copy.status());
    const bool none = !(*copy)->whole() && (*copy)->spoilt().empty();
    if (none && places->seen.name != 0 && there(state + "/format")) return before;
    const auto found = (*copy)->settled();
    if (!found) return unchanged(found.status());
    if (Status s = make_directory(work.above()); !s) return unchanged(s);
    const auto beside = moves(work.mirror, work.above());
    if (!beside) return unchanged(beside.status());
    if (!*beside) {
        copy->reset();
        if (Status s = stage(*places->disk, *found, work.staged()); !s) return unchanged(s);
        failpoint("mirror.promote.staged");
        work.mirror = work.staged();
        auto disk = store::open_posix_disk(work.mirror, keeps_openat2());
        if (!disk) return unchanged(disk.status());
        places->disk = std::move(*disk);
        copy = Copy::open(*places->disk, {});
        if (!copy) return unchanged(copy.status());
    }
    const auto slot = work.raise_epoch(**copy);
    copy->reset();
    if (!slot && slot.status().code == Code::refused && !*beside) (void)remove_staged(work.staged());
    if (!slot) return slot.status();
    if (Status s = work.place(*slot); !s) return s;
    return work.done;
}

}  // namespace dcs::backup
