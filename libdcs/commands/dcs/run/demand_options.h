#pragma once
// What `dcs run` and `dcs map` may say about a grain's placement and attempts.
#include "commands/dcs/frame/arguments.h"
#include "wire/demands.h"

namespace dcs::commands {

// `options` and those that say it.
OptionTable with_demands(OptionTable options);
// What the command line says. Nothing said is one attempt: a failure of the program is a result.
wire::Demands demands_of(const Arguments &arguments);

}  // namespace dcs::commands
