// Events of a session as lines of JSON: `dcs session log -o json`, and the file `log` of an export.
#include <cmath>
#include <cstdio>

#include <boost/json/monotonic_resource.hpp>
#include <boost/json/parser.hpp>
#include <boost/json/value.hpp>

#include "base/limits.h"
#include "wire/event_log.h"
#include "wire/json.h"

namespace dcs::wire {
namespace {

namespace json = boost::json;

// What an event's number is called.
const char *number_key(EventKind kind) {
    switch (kind) {
    case EventKind::started: return "incarnation";
    case EventKind::checkpoint:
    case EventKind::shown: return "sequence";
    case EventKind::finished: return "result";
    case EventKind::handed_out:
    case EventKind::set_back: return "results";
    default: return nullptr;
    }
}

// Takes the keys of one line, each once; the first that is wrong stays in `wrong`.
struct EventKeys {
    const json::object &object;
    std::string wrong{};
    std::size_t taken = 0;

    const json::value *take(const char *key) {
        const json::value *v = object.if_contains(key);
        if (!v && wrong.empty()) wrong = std::string("the key \"") + key + "\" is missing";
        taken += v != nullptr;
        return v;
    }
    template <class T> void number(const char *key, T &into, std::int64_t least, std::int64_t most) {
        const json::value *v = take(key);
        if (!v) return;
        json::error_code error;
        const std::int64_t value = v->is_number() ? v->to_number<std::int64_t>(error) : least - 1;
        if (error || value < least || value > most) {
            if (wrong.empty())
                wrong = std::string("\"") + key + "\" must be " + std::to_string(least) + " to " + std::to_string(most);
            return;
        }
        into = static_cast<T>(value);
    }
    void text(const char *key, std::string &into) {
        const json::value *v = take(key);
        if (v && v->is_string()) into.assign(v->as_string().data(), v->as_string().size());
        else if (v && wrong.empty()) wrong = std::string("\"") + key + "\" must be a string";
    }
    void time(std::int64_t &at_ms) {
        const json::value *v = take("time_s");
        const double seconds = v && v->is_number() ? v->to_number<double>() : -1;
        if (seconds >= 0 && seconds < 1e12) at_ms = std::llround(seconds * 1000);
        else if (wrong.empty()) wrong = "\"time_s\" must be a number of seconds since 1970";
    }
};

void take_parts(EventKeys &keys, Event &e) {
    if (parts_of(e.kind) & has_grain) keys.number("grain", e.grain, 0, INT32_MAX);
    if (parts_of(e.kind) & has_host) keys.text("host", e.host);
    if (e.host.size() > limits::name_bytes && keys.wrong.empty()) keys.wrong = "\"host\" is not the name of a host";
    if (const char *key = number_key(e.kind)) keys.number(key, e.number, 0, UINT32_MAX);
    if (e.kind == EventKind::finished) {
        keys.number("exit_code", e.code, INT32_MIN, INT32_MAX);
        keys.number("signal", e.signal, 0, 1024);
    }
    if (e.kind == EventKind::left) {
        keys.text("reason", e.text);
        keys.text("detail", e.detail);
    }
    if (e.kind == EventKind::opened) keys.text("ident", e.text);
}

}  // namespace

std::string to_line(const Event &e) {
    char time[32];
    const auto seconds = static_cast<long long>(e.at_ms / 1000);
    std::snprintf(time, sizeof time, "%lld.%03d", seconds, static_cast<int>(e.at_ms % 1000));
    std::string r = std::string("{\"time_s\":") + time + ",\"event\":" + json_string(name_of(e.kind));
    if (parts_of(e.kind) & has_grain) r += ",\"grain\":" + std::to_string(e.grain);
    if (parts_of(e.kind) & has_host) r += ",\"host\":" + json_string(e.host);
    if (const char *key = number_key(e.kind)) r += std::string(",\"") + key + "\":" + std::to_string(e.number);
    if (e.kind == EventKind::finished)
        r += ",\"exit_code\":" + std::to_string(e.code) + ",\"signal\":" + std::to_string(e.signal);
    if (e.kind == EventKind::left) r += ",\"reason\":" + json_string(e.text) + ",\"detail\":" + json_string(e.detail);
    if (e.kind == EventKind::opened) r += ",\"ident\":" + json_string(e.text);
    return r + "}";
}

Result<Event> event_of_line(std::string_view line) {
    const auto bad = [](const std::string &why) { return fail(Code::invalid, why); };
    json::monotonic_resource memory;
    json::parser parser(&memory);
    json::error_code error;
    parser.write(line.data(), line.size(), error);
    if (error) return bad("it is not JSON: " + error.message());
    const json::value value = parser.release();
    if (!value.is_object()) return bad("it is not a JSON object");
    EventKeys keys{value.as_object()};
    Event e;
    std::string name;
    keys.time(e.at_ms);
    keys.text("event", name);
    bool known = false;
    for (int k = 1; k <= static_cast<int>(last_event_kind) && !known; ++k) {
        e.kind = static_cast<EventKind>(k);
        known = name == name_of(e.kind);
    }
    if (keys.wrong.empty() && !known) keys.wrong = "unknown event \"" + name.substr(0, 40) + "\"";
    if (keys.wrong.empty()) take_parts(keys, e);
    if (keys.wrong.empty() && keys.taken != keys.object.size())
        keys.wrong = "it has a key that this kind of event does not have";
    if (!keys.wrong.empty()) return bad(keys.wrong);
    return e;
}

}  // namespace dcs::wire
