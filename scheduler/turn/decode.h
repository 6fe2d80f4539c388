#pragma once
// One arrived frame -> the typed input that the core decides, or an answer on the spot: greetings,
// and everything that is refused before it could matter.
#include <map>
#include <optional>
#include <string>

#include "scheduler/core/input.h"
#include "scheduler/turn/connections.h"
#include "scheduler/turn/contents.h"
#include "scheduler/turn/imports.h"
#include "scheduler/turn/live.h"
#include "scheduler/turn/outside.h"
#include "scheduler/turn/uploads.h"

namespace dcs::turn {

struct Decoded {
    std::optional<core::Input> input;
    std::optional<wire::AnyMessage> reply;  // goes out at once, with the frame's request id
    bool close = false;
    std::string note;                       // for the log; empty: nothing to say
    std::size_t weight = 0;                 // what it costs its sender without an input, in small requests
};
Decoded hang_up(std::string note);          // closes, and says nothing to the peer

struct DecodeContext {
    Connections &connections;
    const core::State &state;
    Outside &outside;
    Uploads &uploads;
    Imports &imports;
    Contents &contents;
    Live &live;
};

// `arrival` is a frame of a connection in `context.connections`.
Decoded decode(DecodeContext &context, const Arrival &arrival);

// What is wrong with a submission, whatever the state of its session.
Status check_spec(const wire::GrainSpec &spec);

}  // namespace dcs::turn
