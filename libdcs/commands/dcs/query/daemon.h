#pragma once
// One question to a daemon of this host by its own socket, and the answer.
#include <string>

#include "base/status.h"
#include "wire/message.h"

namespace dcs::commands {

// Fails if the daemon does not answer, or with its error.
Result<wire::AnyMessage> ask_daemon(const std::string &socket, const wire::AnyMessage &question);

}  // namespace dcs::commands
