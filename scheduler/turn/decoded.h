#pragma once
// The outcome of decoding a frame, and what decoding needs.
#include <optional>
#include <string>
#include <utility>

#include "scheduler/state/input.h"
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
    std::string note;        // for the log; empty: nothing to say
    std::size_t weight = 0;  // what it costs its sender without an input, in small requests
};
// Closes, and says nothing to the peer.
inline Decoded hang_up(std::string note) { return {.close = true, .note = std::move(note)}; }

struct DecodeContext {
    Connections &connections;
    const core::State &state;
    Outside &outside;
    Uploads &uploads;
    Imports &imports;
    Contents &contents;
    Live &live;
};

}  // namespace dcs::turn
