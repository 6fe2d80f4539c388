// S7: hosts that were not heard of for long. Deadlines here and in next_deadline.cc agree.
#include "scheduler/core/decisions.h"

namespace dcs::core {
namespace {

void declare_dead(Draft &d, HostId id) {
    const Host &old = d.state.hosts[static_cast<std::size_t>(id)];
    if (old.conn != 0) d.effect(CloseConnection{old.conn});
    Host &host = d.host(id);
    host.status = HostStatus::dead;
    host.conn = 0;
    host.held_back.clear();
    requeue_all(d, id);
    d.event("host " + host.config.name + " is dead, was not heard of for its limit");
}

}  // namespace

void lose_hosts(Draft &d) {
    for (std::size_t i = 0; i < d.state.hosts.size(); ++i) {
        const Host &host = d.state.hosts[i];
        const auto id = static_cast<HostId>(i);
        if (!host.configured || host.status == HostStatus::dead) continue;
        if (d.now > host.last_contact + host.config.limit) {
            declare_dead(d, id);
        } else if (host.status != HostStatus::delinquent &&
                   d.now > host.last_contact + host.config.alert) {
            d.host(id).status = HostStatus::delinquent;
            d.event("host " + host.config.name + " is delinquent");
        }
    }
}

}  // namespace dcs::core
