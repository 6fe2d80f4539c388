#pragma once
// --class NAMES, by the names of the pool's host table.
#include <optional>

#include "commands/dcs/frame/arguments.h"
#include "commands/dcs/frame/failure.h"

namespace dcs::commands {

// Sets `mask` if the option is there. The scheduler is asked unless its value is a number.
std::optional<Failure> take_class(const Arguments &arguments, std::uint32_t &mask);

}  // namespace dcs::commands
