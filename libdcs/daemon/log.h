#pragma once
// A daemon's log on standard error: one event, one line, with UTC time. Texts are plain strings, never
// formats; what could break a line or a terminal in them is escaped (daemon/escape.h). Thread-safe.
#include <string>

#include "base/severity.h"
#include "base/status.h"

namespace dcs {

enum class Level : int { off, error, warn, info, debug };

// "off", "error", "warn", "info", "debug".
Result<Level> level_of(const std::string &word);

// Once at start; before it, and in programs without it, errors and warnings are logged as "dcs".
void log_open(const std::string &name, Level level);
void log_set_level(Level level);  // from any thread, at any time
Level log_level();

void log_error(const std::string &text);
void log_warn(const std::string &text);
void log_info(const std::string &text);
void log_debug(const std::string &text);
void log_line(Severity severity, const std::string &text);

}  // namespace dcs
