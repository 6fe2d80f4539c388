#pragma once
// Who is suspected if the process aborts over an input or an effect (scheduler/shell/suspect.h). A session is only if
// its owner, an operator, or a host that has a grain of it is behind that; otherwise who sent it is named. What a
// request says about itself is a claim until it is authorised: otherwise a sender
// could have others' sessions set aside.
#include <string>

#include "scheduler/state/decision.h"
#include "scheduler/turn/connections.h"

namespace dcs::turn {

struct Concern {
    SessionKey session;  // the empty key: no particular one
    std::string sender;  // if it is no session: a user, or "host NAME"; empty: none
};

Concern concerns(const core::State &state, const core::Input &input);
Concern concerns(const Connections &connections, const core::Effect &effect);
// What arrived over this connection and is not decoded yet.
Concern concerns(const Connection &who);

// Who is behind an input, "user ann", "host h1" or "address 10.0.0.7", as it was proved and not as it is claimed;
// empty: the scheduler itself.
std::string sender_of(const Connections &connections, const core::State &state, const core::Input &input);
std::string sender_of(const Connection &who);

}  // namespace dcs::turn
