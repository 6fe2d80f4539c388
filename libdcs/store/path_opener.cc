#include "store/path_opener.h"

#include <cerrno>

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>

#include "base/require.h"
#include "store/names.h"

namespace dcs::store {
namespace {

constexpr int always = O_NOFOLLOW | O_CLOEXEC;
constexpr int not_for_paths = O_NONBLOCK | O_NOCTTY;  // openat2 rejects them with O_PATH

// Opens a whole path in one call; glibc has no wrapper for it.
int open_beneath(int parent, const char *path, int flags) {
    open_how how{};
    how.flags = static_cast<std::uint64_t>(flags);
    how.mode = (flags & O_CREAT) ? 0600 : 0;
    how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
    return static_cast<int>(::syscall(SYS_openat2, parent, path, &how, sizeof how));
}

}  // namespace

Code code_of(int error) {
    switch (error) {
    case ENOSPC:
    case EDQUOT:
    case EFBIG: return Code::no_space;
    case EMFILE:
    case ENFILE:
    case ENOMEM: return Code::limit;
    case ENOENT: return Code::not_found;
    default: return Code::io_error;
    }
}

PathOpener::PathOpener(Fd root, std::string directory, bool one_call)
    : root_(std::move(root)), directory_(std::move(directory)) {
    // Linux before 5.6 and some sandboxes lack openat2.
    const Fd tried(open_beneath(root_.get(), ".", O_PATH | O_DIRECTORY | O_CLOEXEC));
    one_call_ = one_call && tried;
    take_spares();
}

Status PathOpener::failed(const char *what, const std::string &path, int error) const {
    return fail_errno(code_of(error), std::string(what) + " " + join(directory_, path), error);
}

void PathOpener::take_spares() {
    DCS_REQUIRE(root_, "everything is opened below the root");
    for (Fd &spare : spare_)
        if (!spare) spare = Fd(::fcntl(root_.get(), F_DUPFD_CLOEXEC, 3));
}

int PathOpener::open_once(int parent, const char *name, int flags) const {
    flags |= always | ((flags & O_PATH) ? 0 : not_for_paths);
    return one_call_ ? open_beneath(parent, name, flags) : ::openat(parent, name, flags, 0600);
}

// If descriptors run out, the spare ones are released for this call; the next call opens them again.
Result<Fd> PathOpener::open_at(int parent, const char *name, int flags, const std::string &path) {
    while (true) {
        Fd fd(open_once(parent, name, flags));
        if (fd) return fd;
        if (errno == EINTR) continue;
        Fd *spare = spare_[0] ? &spare_[0] : spare_[1] ? &spare_[1] : nullptr;
        if (errno != EMFILE || !spare) return failed("open", path, errno);
        Fd given_up = std::move(*spare);
    }
}

// Component by component.
Result<Fd> PathOpener::walk(const std::string &path, int flags) {
    Fd parent;
    std::size_t start = 0;
    for (std::size_t slash; (slash = path.find('/', start)) != path.npos; start = slash + 1) {
        Result<Fd> next = open_at(parent ? parent.get() : root_.get(), path.substr(start, slash - start).c_str(),
                                  O_PATH | O_DIRECTORY, path);
        if (!next) return next;
        parent = std::move(*next);
    }
    return open_at(parent ? parent.get() : root_.get(), path.c_str() + start, flags, path);
}

Result<Fd> PathOpener::open(const std::string &path, int flags) {
    if (path.empty() && (flags & O_DIRECTORY)) return open_at(root_.get(), ".", flags, path);
    if (!valid_path(path)) return fail(Code::invalid, "`" + path + "` is not a path below the state directory");
    take_spares();
    return one_call_ ? open_at(root_.get(), path.c_str(), flags, path) : walk(path, flags);
}

Result<PathOpener::Place> PathOpener::locate(const std::string &path) {
    if (!valid_path(path)) return fail(Code::invalid, "`" + path + "` is not a path below the state directory");
    Place place;
    const std::size_t slash = path.rfind('/');
    place.name = slash == path.npos ? path : path.substr(slash + 1);
    place.at = root_.get();
    if (slash == path.npos) return place;
    Result<Fd> parent = open(path.substr(0, slash), O_PATH | O_DIRECTORY);
    if (!parent) return parent.status();
    place.own = std::move(*parent);
    place.at = place.own.get();
    return place;
}

}  // namespace dcs::store
