#pragma once
// The daemons' log: one event, one line, on standard error, with a UTC time stamp. Text may hold
// anything a user or a peer wrote: it is never a format, control characters and broken UTF-8 are
// escaped, so that a line can neither be forged nor move a terminal's cursor. Thread-safe.
#include <string>

#include "base/status.h"

namespace dcs::daemon {

enum class LogLevel { debug, info, warning, error, off };

// Call once at the start. `name` stands in every line.
void log_open(const std::string &name, LogLevel level);
void log_level(LogLevel level);                          // may change at any time
Result<LogLevel> log_level_of(const std::string &word);  // "debug" "info" "warning" "error" "off"

void log_debug(const std::string &line);
void log_info(const std::string &line);
void log_warning(const std::string &line);
void log_error(const std::string &line);

// What the log makes of a text: one printable line, at most 4 KiB of it.
std::string log_text(const std::string &text);

}  // namespace dcs::daemon
