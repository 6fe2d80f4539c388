#pragma once
// Who is behind each connection: known from the kernel when it opens, and from its first frame.
#include <cstdint>
#include <map>
#include <string>

#include "base/ids.h"
#include "scheduler/core/state.h"
#include "scheduler/turn/intake.h"

namespace dcs::turn {

struct Connection {
    Door door = Door::user;
    std::string user;
    bool privileged = false;
    core::Certified certified;
    std::string address;
    bool greeted = false;        // its Hello or FirstCall was seen
    bool has_token = false;      // of the Hello
    TokenHash token{};
    core::HostId host_hint = core::no_host;  // where it was found in the State last
};

class Connections {
public:
    // Refused (limit) above limits::connections, and above limits::connections_per_user.
    Status add(ConnId conn, const Arrival &opened);
    Connection *find(ConnId conn);
    // False if it was not known (any more).
    bool erase(ConnId conn);
    std::size_t count() const { return table_.size(); }
    // The host whose link `conn` is, by the State; no_host if it is nobody's.
    core::HostId host_of(ConnId conn, const core::State &state);

private:
    std::map<ConnId, Connection> table_;
    std::map<std::string, std::size_t> per_user_;  // user connections only
};

}  // namespace dcs::turn
