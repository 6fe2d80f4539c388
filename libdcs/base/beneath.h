#pragma once
// Files below a directory that another user may change at any instant: what is opened lies below it, whatever is
// renamed, linked or mounted there meanwhile.
#include <string>

#include <sys/stat.h>

namespace dcs {

// As openat(2), with errno: `path` is relative and has no "..", none of its parts is a symbolic link, and the file is
// on the directory's own file system. Never waits for a FIFO, never makes a terminal ours, always close-on-exec.
int open_beneath(int directory, const char *path, int flags, mode_t mode = 0) noexcept;
// What open_beneath does on a kernel without openat2(2): one part after the other.
int open_beneath_by_steps(int directory, const char *path, int flags, mode_t mode = 0) noexcept;

// What is wrong with an open file of which nothing is known but whose it should be, as "a file with 2 names"; empty: it
// is a regular one, with one name, of that owner. Only the descriptor's stat(2) says so, never the name's.
std::string strange_file(const struct stat &st, uid_t owner);

// For reading or executing by a path that another user chose: links are followed, but nothing except a regular file is
// opened (a device may act when it is). -1 with errno; EACCES for what is no regular file.
int open_regular(const char *path) noexcept;

// While it lives, files are reached with this user's rights, not with root's. Nothing for who is not root. Groups
// besides `gid` stay ours.
class ActAs {
public:
    ActAs(uid_t uid, gid_t gid) noexcept;
    ~ActAs();
    ActAs(const ActAs &) = delete;
    ActAs &operator=(const ActAs &) = delete;
};

}  // namespace dcs
