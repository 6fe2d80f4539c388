#pragma once
// dcs run, for verbs that are it in other words.
#include "commands/dcs/frame/call.h"

namespace dcs::commands {

extern const Verb run_verb;

}  // namespace dcs::commands
