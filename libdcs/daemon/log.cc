// The only file with spdlog: its headers cost seconds to compile.
#include "daemon/log.h"

#include <memory>

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include "base/require.h"

namespace dcs::daemon {
namespace {

constexpr std::size_t longest = 4096;

std::shared_ptr<spdlog::logger> &logger() {
    static std::shared_ptr<spdlog::logger> one;
    return one;
}

spdlog::level::level_enum spdlog_level(LogLevel level) {
    switch (level) {
    case LogLevel::debug: return spdlog::level::debug;
    case LogLevel::info: return spdlog::level::info;
    case LogLevel::warning: return spdlog::level::warn;
    case LogLevel::error: return spdlog::level::err;
    case LogLevel::off: break;
    }
    return spdlog::level::off;
}

void write(spdlog::level::level_enum level, const std::string &line) {
    if (logger() && logger()->should_log(level)) logger()->log(level, "{}", log_text(line));
}

// Length of the well-formed UTF-8 sequence that begins at `i`; 0 if there is none, or if it is a
// control or bidirectional formatting character.
std::size_t printable_at(const std::string &text, std::size_t i) {
    const auto byte = [&](std::size_t k) { return static_cast<unsigned char>(text[k]); };
    const unsigned lead = byte(i);
    if (lead < 0x80) return lead >= 0x20 && lead != 0x7f ? 1 : 0;
    const std::size_t n = lead >= 0xf0 && lead < 0xf5 ? 4 : lead >= 0xe0 && lead < 0xf0 ? 3
                        : lead >= 0xc2 && lead < 0xe0 ? 2 : 0;
    if (n == 0 || i + n > text.size()) return 0;
    unsigned long point = lead & (0xffu >> (n + 1));
    for (std::size_t k = 1; k < n; ++k) {
        if ((byte(i + k) & 0xc0) != 0x80) return 0;
        point = point << 6 | (byte(i + k) & 0x3f);
    }
    const bool overlong = point < (n == 2 ? 0x80u : n == 3 ? 0x800u : 0x10000u);
    const bool surrogate = point >= 0xd800 && point <= 0xdfff;
    const bool control = point < 0xa0 || (point >= 0x200b && point <= 0x200f) ||
                         (point >= 0x2028 && point <= 0x202e) || (point >= 0x2066 && point <= 0x2069);
    return overlong || surrogate || control || point > 0x10ffff ? 0 : n;
}

}  // namespace

void log_open(const std::string &name, LogLevel level) {
    DCS_REQUIRE(!logger(), "the log is opened once");
    auto sink = std::make_shared<spdlog::sinks::stderr_sink_mt>();
    logger() = std::make_shared<spdlog::logger>(name, sink);
    logger()->set_pattern("%Y-%m-%dT%H:%M:%S.%eZ %n %l: %v", spdlog::pattern_time_type::utc);
    logger()->flush_on(spdlog::level::debug);
    log_level(level);
}

void log_level(LogLevel level) {
    if (logger()) logger()->set_level(spdlog_level(level));
}

Result<LogLevel> log_level_of(const std::string &word) {
    const char *const words[] = {"debug", "info", "warning", "error", "off"};
    for (int i = 0; i < 5; ++i)
        if (word == words[i]) return static_cast<LogLevel>(i);
    return fail(Code::invalid, "log level \"" + word + "\" is none of debug, info, warning, error, off");
}

void log_debug(const std::string &line) { write(spdlog::level::debug, line); }
void log_info(const std::string &line) { write(spdlog::level::info, line); }
void log_warning(const std::string &line) { write(spdlog::level::warn, line); }
void log_error(const std::string &line) { write(spdlog::level::err, line); }

std::string log_text(const std::string &text) {
    static const char digits[] = "0123456789abcdef";
    std::string out;
    for (std::size_t i = 0; i < text.size() && out.size() < longest;) {
        if (const std::size_t n = printable_at(text, i); n != 0) {
            out.append(text, i, n);
            i += n;
            continue;
        }
        const auto byte = static_cast<unsigned char>(text[i++]);
        out += {'\\', 'x', digits[byte >> 4], digits[byte & 15]};
    }
    if (out.size() >= longest) out += "...";
    return out;
}

}  // namespace dcs::daemon
