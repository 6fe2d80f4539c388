#pragma once
// The scheduler's doors. They are made while it still has what its starter has: sockets in its directory, one of them
// for a group, and a port of any number.
#include <memory>
#include <string>

#include "net/loop.h"
#include "scheduler/keeper/keeper.h"
#include "scheduler/shell/tls_door.h"

namespace dcs::shell {

struct Doors {
    net::Door user = -1, server = -1;
    std::unique_ptr<TlsDoor> tls;  // null: none
};
// user.sock and server.sock in `directory` (mode 0600; user.sock for the members of `group` too, unless it is empty or
// "none"), and the door for other hosts at `tls`, unless it is empty, or both doors (TlsDoor::open). No message is read
// before the loop runs.
Result<Doors> open_doors(net::Loop &loop, keeper::KeeperClient &keeper, const std::string &directory,
                         const std::string &group, const std::string &tls, const std::string &tls_users);

}  // namespace dcs::shell
