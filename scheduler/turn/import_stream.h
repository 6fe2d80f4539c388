#pragma once
// An import stream (wire/session_calls.h) -> what the core makes a session of. The stream comes from
// a user: everything that core::check or a launch relies on is checked here, whatever the client
// checked before.
#include <memory>
#include <string_view>

#include "base/status.h"
#include "scheduler/core/input.h"
#include "scheduler/turn/contents.h"

namespace dcs::turn {

// Hosts that `state` does not know are forgotten. `user`: whose session it becomes.
Result<std::shared_ptr<const core::ImportContent>> read_import(std::string_view stream, const std::string &user,
                                                               const core::State &state, const Contents &contents);

}  // namespace dcs::turn
