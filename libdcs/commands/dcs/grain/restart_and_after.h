#pragma once
// dcs grain restart --and-after.
#include "commands/dcs/frame/call.h"

namespace dcs::commands {

int forget_after(const Call &call);

}  // namespace dcs::commands
