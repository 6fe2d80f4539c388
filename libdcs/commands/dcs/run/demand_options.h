#pragma once
// What `dcs run` and `dcs map` may say about a grain's placement and attempts.
#include <optional>
#include <string_view>

#include "commands/dcs/frame/arguments.h"
#include "commands/dcs/frame/failure.h"
#include "wire/demands.h"

namespace dcs::commands {

// `options` and those that say it.
OptionTable with_demands(OptionTable options);
// What the command line says. Nothing said is one attempt: a failure of the program is a result. Names of host classes
// are looked up in the pool.
std::optional<Failure> take_demands(const Arguments &arguments, wire::Demands &said);
bool is_demand(std::string_view option);

}  // namespace dcs::commands
