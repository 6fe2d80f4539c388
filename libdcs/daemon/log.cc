#include "daemon/log.h"

#include <cstddef>
#include <memory>
#include <mutex>

#include <spdlog/details/log_msg.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include "base/text.h"

namespace dcs {
namespace {

constexpr const char *names[] = {"off", "error", "warn", "info", "debug"};

spdlog::level::level_enum theirs(Level level) {
    switch (level) {
    case Level::off: return spdlog::level::off;
    case Level::error: return spdlog::level::err;
    case Level::warn: return spdlog::level::warn;
    case Level::info: return spdlog::level::info;
    case Level::debug: break;
    }
    return spdlog::level::debug;
}

std::shared_ptr<spdlog::logger> make_logger(const std::string &name, Level level) {
    auto sink = std::make_shared<spdlog::sinks::stderr_sink_mt>();
    auto logger = std::make_shared<spdlog::logger>(escape_text(name), std::move(sink));
    logger->set_formatter(std::make_unique<spdlog::pattern_formatter>("%Y-%m-%dT%H:%M:%S.%eZ %n[%P] %l: %v",
                                                                      spdlog::pattern_time_type::utc));
    logger->set_level(theirs(level));
    return logger;
}

std::mutex logger_mutex;

std::shared_ptr<spdlog::logger> &logger_slot() {
    static std::shared_ptr<spdlog::logger> logger = make_logger("dcs", Level::warn);
    return logger;
}

std::shared_ptr<spdlog::logger> logger_now() {
    std::lock_guard lock(logger_mutex);
    return logger_slot();
}

void write_line(Level level, const std::string &text) {
    auto logger = logger_now();
    if (!logger->should_log(theirs(level))) return;
    // The overload without arguments: braces in the text are only text.
    logger->log(theirs(level), spdlog::string_view_t(escape_text(text)));
}

constexpr std::size_t line_bytes = 8192;

void append_escaped(std::string *out, char c) {
    switch (c) {
    case '\\': *out += "\\\\"; return;
    case '\n': *out += "\\n"; return;
    case '\t': *out += "\\t"; return;
    case '\r': *out += "\\r"; return;
    default: break;
    }
    *out += "\\x" + hex_of({&c, 1});
}

}  // namespace

Result<Level> level_of(const std::string &word) {
    for (std::size_t i = 0; i < std::size(names); ++i)
        if (word == names[i]) return static_cast<Level>(i);
    return fail(Code::invalid, "unknown log level \"" + word + "\": off, error, warn, info or debug");
}

void log_open(const std::string &name, Level level) {
    auto logger = make_logger(name, level);
    std::lock_guard lock(logger_mutex);
    logger_slot() = std::move(logger);
}

void log_set_level(Level level) { logger_now()->set_level(theirs(level)); }

Level log_level() {
    switch (logger_now()->level()) {
    case spdlog::level::debug: return Level::debug;
    case spdlog::level::info: return Level::info;
    case spdlog::level::warn: return Level::warn;
    case spdlog::level::off: return Level::off;
    default: return Level::error;
    }
}

void log_error(const std::string &text) { write_line(Level::error, text); }
void log_warn(const std::string &text) { write_line(Level::warn, text); }
void log_info(const std::string &text) { write_line(Level::info, text); }
void log_debug(const std::string &text) { write_line(Level::debug, text); }

void log_line(Severity severity, const std::string &text) {
    switch (severity) {
    case Severity::debug: return log_debug(text);
    case Severity::info: return log_info(text);
    case Severity::warning: return log_warn(text);
    case Severity::error: return log_error(text);
    }
}

void log_audit(const std::string &text) {
    const auto logger = logger_now();
    const std::string line = escape_text(text);
    // Past the logger, whose level may be anything.
    const spdlog::details::log_msg message(logger->name(), spdlog::level::info, spdlog::string_view_t(line));
    for (const spdlog::sink_ptr &sink : logger->sinks()) {
        sink->log(message);
        sink->flush();
    }
}

std::string escape_text(std::string_view text) {
    std::string out;
    while (!text.empty()) {
        if (out.size() >= line_bytes) return out + "...";
        char32_t value = 0;
        std::size_t length = utf8_character(text, &value);
        if (length > 0 && value != '\\' && !drives_terminals(value)) {
            out.append(text.substr(0, length));
        } else {
            if (length == 0) length = 1;
            for (char c : text.substr(0, length)) append_escaped(&out, c);
        }
        text.remove_prefix(length);
    }
    return out;
}

}  // namespace dcs
