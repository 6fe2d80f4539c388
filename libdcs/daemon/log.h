#pragma once
// A daemon's log on standard error: one event, one line, with UTC time. Texts are plain strings, never
// formats; what could break a line or a terminal in them is escaped. Thread-safe.
#include <string>
#include <string_view>

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

// Who gave which order, who was let in: a line that no log level keeps back, `off` neither. `text` begins with
// "audit: ".
void log_audit(const std::string &text);

// Foreign text on one line that no terminal misreads. Printable ASCII and well-formed UTF-8 pass. Backslash, control
// characters, bytes that are no UTF-8 and characters that turn the direction of writing become \\, \n, \t, \r or \xHH.
// Cut after 8 KiB, marked "...".
std::string escape_text(std::string_view text);

}  // namespace dcs
