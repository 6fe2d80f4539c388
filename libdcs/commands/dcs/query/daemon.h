#pragma once
// One question to a daemon of this host by its own socket, and the answer.
#include <string>

#include "base/status.h"
#include "wire/message.h"

namespace dcs::commands {

// Fails if nobody answers, or with what the daemon says against it.
Result<wire::AnyMessage> ask_daemon(const std::string &socket, const wire::AnyMessage &question);

}  // namespace dcs::commands
