#include "daemon/directory.h"

#include <cerrno>
#include <climits>
#include <deque>

#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/files.h"
#include "base/planted.h"
#include "base/text.h"

namespace dcs {
namespace {

Result<locks::AdaptiveLock> lock(locks::DcsAtom atom, const std::string &path, const std::string &who) {
    auto taken = locks::take_dcs_atom(atom, path);
    if (taken) return taken;
    const bool held = taken.status().code == Code::refused && ::access(path.c_str(), W_OK) == 0;
    const std::string what =
        held ? "another " + who + " uses this directory: " : "the " + who + "'s lock cannot be taken: ";
    return fail(taken.status().code, what + taken.status().text);
}

constexpr int links_max = 40;  // as the kernel has it

Status untrusted(const std::string &path, const std::string &at, const std::string &what, const std::string &cure) {
    return fail(Code::refused, path + " is not safe for a daemon of root: " + at + " " + what +
                                   ", who could replace files that root trusts. Choose another place, or " + cure);
}

// With a list of rights (ACL) the bits of the group are the most that any of the list has.
bool others_write(const std::string &at, const struct stat &st) {
    if ((st.st_mode & S_IWGRP) == 0) return (st.st_mode & S_IWOTH) != 0;
    return (st.st_mode & S_IWOTH) != 0 || st.st_gid != 0 ||
           ::lgetxattr(at.c_str(), "system.posix_acl_access", nullptr, 0) > 0;
}

Status judge(const std::string &path, const std::string &at, const struct stat &st) {
    if (st.st_uid != 0)
        return untrusted(path, at, "belongs to uid " + std::to_string(st.st_uid), "`chown root " + at + "`");
    const bool sticky = S_ISDIR(st.st_mode) && (st.st_mode & S_ISVTX) != 0;  // what is in there is judged by its owner
    if (S_ISLNK(st.st_mode) || sticky || !others_write(at, st)) return Status::ok();
    return untrusted(path, at, "can be written by other users", "`chmod go-w " + at + "`");
}

// Names of a path, from the front.
void put_before(std::deque<std::string> &names, const std::string &path) {
    const std::vector<std::string_view> found = words_of(path, "/");
    names.insert(names.begin(), found.begin(), found.end());
}

std::string absolute(const std::string &path) {
    if (!path.empty() && path[0] == '/') return path;
    char here[PATH_MAX];
    return ::getcwd(here, sizeof here) != nullptr ? std::string(here) + "/" + path : path;
}

std::string target_of(const std::string &link) {
    char text[PATH_MAX];
    const ssize_t n = ::readlink(link.c_str(), text, sizeof text);
    return n > 0 ? std::string(text, static_cast<std::size_t>(n)) : std::string();
}

}  // namespace

Result<OwnDirectory> take_own_directory(const std::string &directory, locks::DcsAtom daemon, locks::DcsAtom store,
                                        const std::string &who) {
    OwnDirectory own{.state = directory + "/state"};
    if (Status s = trusted_path(directory); !s) return s;  // before anything is made there
    if (Status s = make_directory(directory); !s) return s;
    if (Status s = make_directory(own.state); !s) return s;
    if (Status s = trusted_path(own.state); !s) return s;
    auto of_daemon = lock(daemon, directory + "/lock", who);
    if (!of_daemon) return of_daemon.status();
    auto of_store = lock(store, own.state + "/lock", who);
    if (!of_store) return of_store.status();
    own.daemon = std::move(*of_daemon);
    own.store = std::move(*of_store);
    return own;
}

bool RemovalWatch::removed() {
    if (boot_clock() < next_) return false;
    next_ = boot_clock() + seconds(5);
    return locks::was_removed(lock_);
}

Status trusted_path(const std::string &path) {
    if (::geteuid() != 0 || planted("daemon.any_path")) return Status::ok();
    std::deque<std::string> names;
    put_before(names, absolute(path));
    std::string at;  // without a last slash; empty: /
    struct stat st = {};
    for (int links = 0;;) {
        const std::string here = at.empty() ? "/" : at;
        if (::lstat(here.c_str(), &st) != 0)
            return errno == ENOENT || errno == ENOTDIR ? Status::ok()
                                                       : fail_errno(Code::io_error, "cannot examine " + here, errno);
        if (Status s = judge(path, here, st); !s) return s;
        if (S_ISLNK(st.st_mode)) {
            if (++links > links_max) return fail(Code::invalid, path + " goes through too many links");
            const std::string target = target_of(here);
            at = target.empty() || target[0] == '/' ? "" : at.substr(0, at.rfind('/'));
            put_before(names, target);
            continue;
        }
        if (names.empty()) return Status::ok();
        const std::string name = names.front();
        names.pop_front();
        if (name == "..") at = at.substr(0, at.empty() ? 0 : at.rfind('/'));
        else if (name != ".") at += "/" + name;
    }
}

}  // namespace dcs
