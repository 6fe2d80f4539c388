#pragma once
// An exported session as people read and edit it: the file `session` in `key: value` lines, the file
// `grains` with one JSON object a line. docs/SESSION_EXPORT.md describes every key. What is read
// back is strict: an unknown key, a missing one or a wrong type is an error that says which.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "wire/session_calls.h"

namespace dcs::wire {

// Where a grain's stream is: in its line, or in a file beside it.
struct StreamPlace {
    bool in_file = false;
    std::string text;                     // in the line
    std::string file;                     // "files/17.out"
    std::optional<std::uint64_t> offset;  // it is a part of that file
    std::optional<std::uint64_t> length;  // always there with an offset
    std::optional<std::uint32_t> crc;     // CRC-32C
};
struct GrainLine {
    ExportedGrain grain;  // its streams empty
    StreamPlace input, out, err, checkpoint, message;
};

std::string to_line(const GrainLine &line);  // without the newline
// Types and ranges of single keys are checked here, what keys say about each other is not.
Result<GrainLine> grain_of_line(std::string_view text);

// Does it fit in a line as it is: valid UTF-8, no control characters but newline and tab.
bool plain_text(std::string_view bytes);

std::string to_text(const ExportedSession &session);
// An error begins with the number of its line: "3: ...".
Result<ExportedSession> session_of_text(std::string_view text);

}  // namespace dcs::wire
