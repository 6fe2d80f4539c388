#include "scheduler/shell/doors.h"

#include <cerrno>

#include <sys/stat.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/load_limits.h"
#include "daemon/log.h"
#include "daemon/peer_name.h"

namespace dcs::shell {
namespace {

// Both doors let in only who the kernel names, so frames may be large from the first one on.
net::Limits door_limits(std::size_t max_payload) {
    net::Limits limits;
    limits.max_payload = max_payload;
    return limits;
}

// Members of the group come through the directory to this socket, and to nothing else in there. All is prepared before
// the socket has its name: a member that is refused does not try again.
Result<net::Door> open_to_users(net::Loop &loop, const std::string &directory, const std::string &group,
                                const net::Limits &limits) {
    if (group.empty() || group == "none") return loop.listen_unix(directory, "user.sock", 0600, limits);
    const auto gid = group_number(group);
    if (!gid) return fail(gid.status().code, "--group: " + gid.status().text);
    if (::chmod(directory.c_str(), 0711) != 0)
        return fail_errno(Code::io_error, "cannot open " + directory + " to the group " + group, errno);
    log_info("members of the group " + group + " may connect");
    return loop.listen_unix(directory, "user.sock", 0660, limits, *gid);
}

}  // namespace

Result<Doors> open_doors(net::Loop &loop, keeper::KeeperClient &keeper, const std::string &directory,
                         const std::string &group, const std::string &tls, const std::string &tls_users) {
    Doors doors;
    net::Limits users = door_limits(limits::user_frame_bytes);
    users.per_user = limits::connections_per_user + limits::refused_connections;
    const auto user = open_to_users(loop, directory, group, users);
    if (!user) return user.status();
    net::Limits servers = door_limits(limits::server_frame_bytes);
    servers.per_user = limits::connections;  // all of a pool's servers may be one user's
    servers.of_pool = true;
    const auto server = loop.listen_unix(directory, "server.sock", 0600, servers);
    if (!server) return server.status();
    doors.user = *user;
    doors.server = *server;
    if (tls.empty()) return doors;
    auto opened = TlsDoor::open(loop, keeper, tls, tls_users);
    if (!opened) return opened.status();
    doors.tls = std::move(*opened);
    return doors;
}

}  // namespace dcs::shell
