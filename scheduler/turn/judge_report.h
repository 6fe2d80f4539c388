#pragma once
// One rule for what a host brings, whether it comes by itself or the backup hands it over.
#include <optional>
#include <string>

#include "scheduler/turn/contents.h"

namespace dcs::turn {

// Why a report does not count now: the library does not have an output, or has it neither from this host nor for this
// user; or there is no room for the user.
struct NotNow {
    std::string words;
    bool output = false;
};
std::optional<NotNow> why_not_now(const core::State &state, const Contents &contents, const std::string &host,
                                  const wire::GrainReport &report);

}  // namespace dcs::turn
