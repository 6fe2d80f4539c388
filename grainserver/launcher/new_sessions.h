#pragma once
// If the kernel weighs sessions against each other (autogroup), a child of a grain that creates a
// session has full weight again, whatever its nice value.
#include <map>
#include <set>

#include <sys/types.h>

#include "grainserver/starter/starter_client.h"

namespace dcs::launcher {

class NewSessions {
public:
    // Scans the grains' trees and lowers the sessions that are not lowered yet. `grains`: their
    // first processes. False: the kernel refused one for now; repeat soon.
    bool lower(const std::set<pid_t> &grains, starter::StarterClient &starter);
    // Whether this kernel has autogroup.
    static bool matter();

private:
    std::map<pid_t, bool> seen_;  // sessions below the grains: lowered?
};

}  // namespace dcs::launcher
