// Orders of operators: read the settings again, log more or less.
#include <algorithm>

#include "scheduler/core/decisions.h"

namespace dcs::core {

void reload(Draft &d, const Caller &caller, const wire::Reload &call) {
    d.effect(Reread{caller.conn, caller.request, caller.user, call.move_grains});
}

void set_log_level(Draft &d, const Caller &caller, const wire::SetLogLevel &call) {
    if (std::none_of(std::begin(wire::log_levels), std::end(wire::log_levels),
                     [&](const char *word) { return call.level == word; }))
        return d.refuse(caller, fail(Code::invalid, "the log level must be off, error, warn, info or debug"));
    if (call.host.empty()) {
        d.effect(SetOwnLogLevel{call.level});
    } else {
        const Host *host = d.state.host(d.state.host_id(call.host));
        if (!host || !host->configured)
            return d.refuse(caller, fail(Code::not_found, "there is no host " + call.host +
                                                              " in the host table; `dcs host ls` lists them"));
        if (host->conn == no_connection)
            return d.refuse(
                caller, fail(Code::refused, "the grain server of " + call.host + " is not connected: try again later"));
        d.effect(SendServer{host->conn, wire::LogLevel{call.level}});
    }
    d.reply(caller, wire::Done{});
    d.event("log level of " + (call.host.empty() ? "the scheduler" : call.host) + " set to " + call.level + " by " +
            caller.user);
}

}  // namespace dcs::core
