#pragma once
// One question to a daemon of this host by its own socket, and the answer.
#include <string>

#include "base/status.h"
#include "wire/message.h"

namespace dcs::commands {

// Fails if the daemon does not answer within `patience_s`, or with its error.
Result<wire::AnyMessage> ask_daemon(const std::string &socket, const wire::AnyMessage &question, int patience_s = 10);

}  // namespace dcs::commands
