#pragma once
#include "options.h"

namespace dcs::lock_command {

// `line` without argv[0]. `found.json` is valid even after an error.
Status parse(const std::vector<std::string> &line, Options &found);

}  // namespace dcs::lock_command
