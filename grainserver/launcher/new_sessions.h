#pragma once
// Where the kernel weighs sessions against each other (autogroup), a child of a grain that begins a
// session of its own has the full weight again, whatever its nice value says.
#include <map>
#include <set>

#include <sys/types.h>

namespace dcs::launcher {

class NewSessions {
public:
    // Looks through the grains' trees and lowers the sessions that it has not lowered yet. `grains`: their
    // first processes. False: the kernel refused one for now, look again soon.
    bool lower(const std::set<pid_t> &grains);
    // Is there such a thing on this kernel?
    static bool matter();

private:
    std::map<pid_t, bool> seen_;  // sessions below the grains: lowered?
};

}  // namespace dcs::launcher
