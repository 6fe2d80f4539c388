#pragma once
// What a host brings, by itself or by way of the backup. What the backup has acknowledged must not be lost: of that,
// contents that no user has count as shown by the host, as a restart of the scheduler forgets who showed them, and no
// room is asked for.
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
enum class Way : std::uint8_t { from_host, from_backup };
std::optional<NotNow> why_not_now(const core::State &state, const Contents &contents, const std::string &host,
                                  const wire::GrainReport &report, Way way);

}  // namespace dcs::turn
