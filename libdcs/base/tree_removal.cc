#include "base/tree_removal.h"

#include <cerrno>
#include <climits>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/beneath.h"
#include "base/files.h"
#include "base/planted.h"

namespace dcs {
namespace {

// Only a directory's own: by now a link to another file may have its name.
bool unlock(int parent, const std::string &name) {
    const Fd fd(::openat(parent, name.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    return fd && ::chmod(("/proc/self/fd/" + std::to_string(fd.get())).c_str(), 0700) == 0;
}

Fd enter(int parent, const std::string &name) {
    const int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC | (planted("files.remove.follow") ? 0 : O_NOFOLLOW);
    const bool plain = parent == AT_FDCWD || (flags & O_NOFOLLOW) == 0;
    const auto open = [&] {
        return Fd(plain ? ::openat(parent, name.c_str(), flags) : open_beneath(parent, name.c_str(), flags));
    };
    Fd fd = open();
    if (!fd && errno == EACCES && unlock(parent, name)) fd = open();
    return fd;
}

}  // namespace

// True: the name is gone. False: it is a directory that is not empty, and the level that is worked on now.
Result<bool> TreeRemoval::take(int directory, const std::string &name) {
    if (::unlinkat(directory, name.c_str(), 0) == 0 || errno == ENOENT) return true;
    const int why = errno;
    if (why != EISDIR && why != EPERM) return file_error(name, why);
    if (::unlinkat(directory, name.c_str(), AT_REMOVEDIR) == 0) return true;
    Fd fd = enter(directory, name);
    if (!fd && errno == ENOENT) return true;
    struct stat st {};
    if (!fd || ::fstat(fd.get(), &st) != 0) return file_error(name, errno);
    // Root needs no mode; for others a failure shows below.
    if ((st.st_mode & 0700) != 0700) (void)::fchmod(fd.get(), 0700);
    Result<std::vector<std::string>> names = list_directory(fd.get());
    if (!names) return names.status();
    levels_.push_back({name, st.st_dev, st.st_ino, std::move(*names)});
    here_ = std::move(fd);
    return false;
}

// The level is empty: the one above is worked on again, if it is still the one from which this one was entered.
Result<bool> TreeRemoval::leave() {
    const std::string name = std::move(levels_.back().name);
    levels_.pop_back();
    int above = parent_;
    if (!levels_.empty()) {
        Fd fd(::openat(here_.get(), "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
        struct stat st {};
        if (!fd || ::fstat(fd.get(), &st) != 0) return file_error(name, errno);
        const bool same = st.st_dev == levels_.back().device && st.st_ino == levels_.back().inode;
        if (!same && !planted("files.remove.any_parent"))
            return fail(Code::io_error, name + " was moved while it was being removed");
        here_ = std::move(fd);
        above = here_.get();
    }
    const std::string &known = levels_.empty() ? name_ : name;
    if (::unlinkat(above, known.c_str(), AT_REMOVEDIR) != 0 && errno != ENOENT) return file_error(known, errno);
    return levels_.empty();
}

Result<bool> TreeRemoval::go_on(int names) {
    if (levels_.empty())
        if (auto done = take(parent_, name_); !done || *done) return done;
    while (names-- > 0) {
        std::vector<std::string> &left = levels_.back().left;
        if (left.empty()) {
            if (auto done = leave(); !done || *done) return done;
            continue;
        }
        const std::string name = std::move(left.back());
        left.pop_back();
        if (auto done = take(here_.get(), name); !done) return done;
    }
    return false;
}

// Of files.h: all at once.
Status remove_tree(int parent, const std::string &name) {
    TreeRemoval tree(parent, name);
    return tree.go_on(INT_MAX).status();
}

}  // namespace dcs
