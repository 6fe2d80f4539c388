#pragma once
// What a daemon has noted of its configuration (base/config_record.h).
#include <string>

#include "base/config_record.h"
#include "base/status.h"

namespace dcs::commands {

// Of the daemon whose directory this is. not_found: it never noted anything; io_error: it cannot be read, or is no
// record.
Result<ConfigRecord> daemon_record(const std::string &directory);

}  // namespace dcs::commands
