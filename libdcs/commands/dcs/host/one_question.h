#pragma once
// One message to a pool's scheduler from a host that has no connection to it, and the answer.
#include <string>
#include <vector>

#include "net/tls.h"
#include "wire/message.h"

namespace dcs::commands {

// Of the first of these addresses, each HOST:PORT, where there is a scheduler. An answer is any message. `self` may be
// empty. Waits at most half a minute for each.
Result<wire::AnyMessage> ask_scheduler(const std::vector<std::string> &addresses, const net::TlsSelf &self,
                                       net::TlsTrust trust, const wire::AnyMessage &question);

}  // namespace dcs::commands
