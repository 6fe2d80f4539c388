#pragma once
#include "options.h"

namespace dcs::lock_command {

// `line` without argv[0]. On an error `found.json` is still right.
Status parse(const std::vector<std::string> &line, Options &found);

}  // namespace dcs::lock_command
