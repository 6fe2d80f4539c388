#pragma once
#include <string>

#include "base/status.h"

namespace dcs {

// After it, names that were made, renamed or removed in the directory survive a power failure. io_error otherwise.
Status sync_directory(const std::string &directory);

}  // namespace dcs
