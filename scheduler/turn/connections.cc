#include "scheduler/turn/connections.h"

namespace dcs::turn {

Status Connections::add(ConnId conn, const Arrival &opened) {
    if (table_.size() >= limits::connections)
        return fail(Code::limit, "the scheduler has " + std::to_string(limits::connections) +
                                     " connections, which is the limit: try again later");
    if (opened.door == Door::user) {
        std::size_t &mine = per_user_[opened.user];
        if (mine >= limits_.connections)
            return fail(Code::limit, opened.user + " has " + std::to_string(mine) +
                                         " connections to the scheduler, but the limit `connections` is " +
                                         std::to_string(limits_.connections) + ": end some control programs");
        ++mine;
    }
    DCS_REQUIRE(table_.count(conn) == 0, "a connection is added once");
    Connection &c = table_[conn];
    c.door = opened.door;
    c.user = opened.user;
    c.privileged = opened.privileged;
    c.certified = opened.certified;
    c.address = opened.address;
    return Status::ok();
}

Connection *Connections::find(ConnId conn) {
    const auto found = table_.find(conn);
    return found == table_.end() ? nullptr : &found->second;
}

const Connection *Connections::find(ConnId conn) const {
    const auto found = table_.find(conn);
    return found == table_.end() ? nullptr : &found->second;
}

bool Connections::erase(ConnId conn) {
    const auto found = table_.find(conn);
    if (found == table_.end()) return false;
    if (found->second.door == Door::user) {
        const auto mine = per_user_.find(found->second.user);
        DCS_REQUIRE(mine != per_user_.end(), "each user's connections are counted");
        if (--mine->second == 0) per_user_.erase(mine);
    }
    table_.erase(found);
    return true;
}

std::vector<ConnId> Connections::programs_of(const std::string &host) const {
    std::vector<ConnId> found;
    for (const auto &[conn, c] : table_)
        if (!is_link(c.door) && c.certified.host == host) found.push_back(conn);
    return found;
}

}  // namespace dcs::turn
