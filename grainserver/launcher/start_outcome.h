#pragma once
// What became of a start; the causes of one that failed, and the words for those who read them.
#include <string>

#include <sys/types.h>

#include "base/resources.h"
#include "base/status.h"
#include "grainserver/files/grain_record.h"
#include "grainserver/starter/become_grain.h"
#include "grainserver/launcher/leaves.h"

namespace dcs::launcher {

struct StartOutcome {
    enum class Kind : std::uint8_t { started, have_it, failed } kind = Kind::failed;
    pid_t pid = 0;              // started
    bool low_priority = false;  // started: its session has low weight already
    files::Limits limits;       // started
    Leaf leaf;                  // started: its control group, if it has one, and which limits that enforces
    files::Account account;     // started: as in its record
    Code code = Code::ok;       // failed. not_found, invalid: see wire::LaunchResult; others: an error of the host
    Indices indices;            // started: of resources, that are its own
    bool again = false;         // failed: no slot is free just now, or too few indices of a resource
    bool lacks_indices = false;
    std::string text;  // failed: the reason
};

StartOutcome failed(Code code, std::string text, bool again = false);
// What the child reported.
StartOutcome told(const starter::Failure &failure, const files::LaunchRecord &launch);

}  // namespace dcs::launcher
