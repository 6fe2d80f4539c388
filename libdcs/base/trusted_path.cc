#include "base/trusted_path.h"

#include <cerrno>
#include <climits>
#include <deque>
#include <functional>

#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/planted.h"
#include "base/text.h"

namespace dcs {
namespace {

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

using Look = std::function<Status(const std::string &at, const struct stat &st)>;

// Everything on the way to `path`, and itself, from / on, until `look` finds a fault. not_found: the way ends before.
Status walk(const std::string &path, const Look &look) {
    std::deque<std::string> names;
    put_before(names, absolute(path));
    std::string at;  // without a last slash; empty: /
    struct stat st = {};
    for (int links = 0;;) {
        const std::string here = at.empty() ? "/" : at;
        if (::lstat(here.c_str(), &st) != 0) {
            if (errno == ENOENT || errno == ENOTDIR) return fail_errno(Code::not_found, path, errno);
            return fail_errno(Code::io_error, "cannot examine " + here, errno);
        }
        if (Status s = look(here, st); !s) return s;
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

}  // namespace

Status trusted_path(const std::string &path) {
    if (::geteuid() != 0 || planted("daemon.any_path")) return Status::ok();
    const auto look = [&](const std::string &at, const struct stat &st) { return judge(path, at, st); };
    Status s = walk(path, look);
    return s.code == Code::not_found ? Status::ok() : s;
}

Result<uid_t> account_of_path(const std::string &path) {
    if (::geteuid() != 0) return ::geteuid();
    uid_t owner = 0;
    std::string open;  // the last directory, if other users may write it
    bool sticky = false;
    const auto not_safe = [&] {
        return fail(Code::refused, path + " is not safe for root: " + open +
                                       " can be written by other users. Run the command as the account of the pool" +
                                       (sticky ? "" : ", or `chmod go-w " + open + "`"));
    };
    const Status s = walk(path, [&](const std::string &at, const struct stat &st) {
        owner = st.st_uid;
        if (owner != 0 || (!open.empty() && !sticky)) return not_safe();
        sticky = (st.st_mode & S_ISVTX) != 0;
        open = !S_ISLNK(st.st_mode) && others_write(at, st) ? at : "";
        return Status::ok();
    });
    if (owner != 0) return owner;
    if (!s) return s;
    return open.empty() ? Result<uid_t>(0) : Result<uid_t>(not_safe());
}

}  // namespace dcs
