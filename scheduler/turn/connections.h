#pragma once
// Who is behind each connection: known from the kernel when it opens, and from its first frame.
#include <map>
#include <string>
#include <vector>

#include "base/ids.h"
#include "scheduler/state/state.h"
#include "scheduler/turn/intake.h"

namespace dcs::turn {

struct Connection {
    Door door = Door::user;
    std::string user;
    bool privileged = false;
    core::Certified certified;
    Instant ends = Instant::never();  // with the certificate of a program or dcs_begin, even if the wall clock is set
    std::string address;
    bool greeted = false;       // its Hello or FirstCall was seen
    core::HandedOver promised;  // server: what the backup has of it, said before its FirstCall
    bool backup = false;        // server: it is the passive backup
    bool has_token = false;     // of the Hello
    TokenHash token{};
};

class Connections {
public:
    // Refused (limit) above limits::connections, and above those that one user may have.
    Status add(ConnId conn, const Arrival &opened);
    Connection *find(ConnId conn);
    const Connection *find(ConnId conn) const;
    // False if it was unknown or already gone.
    bool erase(ConnId conn);
    // Of dcs_begin of that host, and of control programs there.
    std::vector<ConnId> programs_of(const std::string &host) const;
    std::size_t count() const { return table_.size(); }
    void set_limits(const UserLimits &limits) { limits_ = limits; }

private:
    UserLimits limits_;
    std::map<ConnId, Connection> table_;
    std::map<std::string, std::size_t> per_user_;  // user connections only
};

}  // namespace dcs::turn
