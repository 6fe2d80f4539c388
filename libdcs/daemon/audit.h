#pragma once
// Who gave which order, who was let in: lines of the daemon's log that no log level keeps back.
#include <string>

namespace dcs {

// Written at every level, `off` too, escaped as every line is. `text` begins with "audit: ". Thread-safe.
void log_audit(const std::string &text);

}  // namespace dcs
