// The server's answer to a launch (S3: a failed start makes the host nogo and the search goes on).
#include "scheduler/core/decisions.h"

namespace dcs::core {

void launch_result(Draft &d, const ServerLaunchResult &in) {
    const Host *host = d.state.host(in.host);
    if (!host || host->conn != in.conn) return;
    hear_from(d, in.host);
    const wire::LaunchResult &result = in.result;
    const GrainKey key = wire::key_of(result.key);
    const Grain *grain = d.state.grain(key);
    const bool leased = grain && grain->status == GrainStatus::running && grain->host == in.host &&
                        grain->incarnation == result.incarnation;
    if (!leased) {
        if (result.ok)
            d.withdraw(in.host, key, result.incarnation, true,
                       "it is not leased to this host any more");
        return;
    }
    if (result.ok) {
        d.grain(key).launched = true;
        d.grain(key).last_contact = d.now;
        return d.volatile_only(key);
    }
    requeue_front(d, key, false);
    if (static_cast<Code>(result.code) == Code::not_found)
        d.grain(key).nogo.edit().push_back(in.host);
    else
        hold_back(d, in.host, key);
    d.follow_up(PlaceGrain{key});
    d.follow_up(FillHost{in.host});
    wake_waiters(d, key.session);
    d.event("grain " + to_text(key) + " could not be started on " + host->config.name + ": " +
            result.text);
}

}  // namespace dcs::core
