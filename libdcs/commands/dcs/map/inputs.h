#pragma once
// What `dcs map` is asked to do: its command and its inputs, of standard input, a file, or lists on the command line.
#include <optional>

#include "commands/dcs/frame/call.h"
#include "plan.h"

namespace dcs::commands {

// Options under the names that GNU parallel has for them, under ours.
Call in_our_words(const Call &call);

std::optional<Failure> make_plan(const Call &call, MapPlan &plan);

}  // namespace dcs::commands
