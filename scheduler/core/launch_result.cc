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
                        grain->lease == result.incarnation;
    if (!leased) {
        if (result.ok || result.staged)
            d.withdraw(in.host, key, result.incarnation, true,
                       "it is not leased to this host any more");
        return;
    }
    if (result.ok || result.staged) {
        if (grain->program != 0) d.host(in.host).missing.erase(grain->program);
        d.grain(key).launched = result.ok;
        d.grain(key).last_contact = d.now;
        d.volatile_only(key);
        return result.staged ? staged(d, key, in.host) : void();
    }
    const bool no_program = static_cast<Code>(result.code) == Code::not_found;
    note_move(d, key, no_program ? MoveReason::no_program : MoveReason::start_failed, result.text);
    requeue_front(d, key, false);
    if (no_program) {
        d.grain(key).nogo.edit().push_back(in.host);
        // The next of a million grains of the same program need not be tried at once.
        if (grain->program != 0) d.host(in.host).missing[grain->program] = d.now + host->config.interval;
    } else {
        hold_back(d, in.host, key);
    }
    d.follow_up(PlaceGrain{key});
    d.follow_up(FillHost{in.host});
    d.event("grain " + to_text(key) + " could not be started on " + host->config.name + ": " +
            result.text);
}

}  // namespace dcs::core
