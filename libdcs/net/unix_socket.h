#pragma once
// Unix stream sockets by directory and name, for directories of any length (sun_path holds 107 bytes).
// Descriptors that come out of here are non-blocking, close-on-exec and belong to the caller.
#include <string>

#include "base/status.h"
#include "net/loop.h"

namespace dcs::net {

// A listening socket `directory/name` with `mode`. It gets that name only when it is ready, in place of
// a left-over socket: those who connect meanwhile reach the old or the new one, never no file at all.
Result<int> listen_unix_socket(const std::string &directory, const std::string &name, unsigned mode);

// Connects a socket of the caller's that does not block: 0 or an errno. While the listener's queue is full it waits
// for a place there; EAGAIN: for so long.
int connect_to_path(int socket, const std::string &path, Duration wait);

// A connected descriptor, or -1 and errno; EAGAIN: the listener's queue was full for 50 ms, try again.
int connect_unix_socket(const std::string &path);

// A connection from a listening descriptor, or -1 and errno.
int accept_socket(int listener);

// Who is at the other end, as the kernel recorded it when the connection was made.
Peer peer_of(int fd);

}  // namespace dcs::net
