#include "wire/event_log.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include <boost/json/monotonic_resource.hpp>
#include <boost/json/parser.hpp>
#include <boost/json/value.hpp>

#include "base/limits.h"
#include "wire/json.h"

namespace dcs::wire {
namespace {

constexpr std::uint8_t version = 1;
// Far above what a turn does; a length beyond it is damage.
constexpr std::uint64_t max_body = 64u << 20;
constexpr std::size_t most_head = 10 + 4;  // the length and the checksum of a frame

namespace json = boost::json;

// In the order of EventKind.
struct KindRow {
    const char *name;
    unsigned parts;
    const char *number = nullptr;  // what its number is called
};
constexpr KindRow kind_rows[] = {
    {"?", 0},  // no kind
    {"opened", has_text},
    {"resumed", 0},
    {"reopened", 0},
    {"closed", 0},
    {"imported", 0},
    {"submitted", has_grain},
    {"started", has_grain | has_host | has_number, "incarnation"},
    {"checkpoint", has_grain | has_number, "sequence"},
    {"left", has_grain | has_host | has_text | has_detail},
    {"finished", has_grain | has_number | has_end, "result"},
    {"killed", has_grain},
    {"handed_out", has_number, "results"},
    {"shown", has_grain | has_number, "sequence"},
    {"undone", has_grain},
    {"forgotten", has_grain},
    {"set_back", has_number, "results"},
};
static_assert(std::size(kind_rows) == static_cast<std::size_t>(last_event_kind) + 1);

const KindRow &row_of(EventKind kind) {
    return kind_rows[kind <= last_event_kind ? static_cast<std::size_t>(kind) : 0];
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
    if (const char *key = row_of(e.kind).number) keys.number(key, e.number, 0, UINT32_MAX);
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

void put_text(ByteWriter &w, std::string_view text) {
    w.var(text.size());
    w.raw(text);
}

Status damaged(const char *what) { return fail(Code::io_error, std::string("the event log: ") + what); }

}  // namespace

unsigned parts_of(EventKind kind) { return row_of(kind).parts; }

const char *name_of(EventKind kind) { return row_of(kind).name; }

void EventFrame::add(const Event &e) {
    ByteWriter w;
    const unsigned parts = parts_of(e.kind);
    w.u8(static_cast<std::uint8_t>(e.kind));
    if (parts & has_grain) {
        w.svar(std::int64_t{e.grain} - grain_);
        grain_ = e.grain;
    }
    if (parts & has_host) {
        const auto [named, fresh] = hosts_.try_emplace(e.host, hosts_.size() + 1);
        w.var(fresh ? 0 : named->second);
        if (fresh) put_text(w, e.host);
    }
    if (parts & has_number) w.var(e.number);
    if (parts & has_end) {
        w.svar(e.code);
        w.svar(e.signal);
    }
    if (parts & has_text) put_text(w, e.text);
    if (parts & has_detail) put_text(w, e.detail);
    events_ += w.bytes();
}

std::string EventFrame::framed(std::int64_t at_ms) const {
    ByteWriter body;
    body.u8(version);
    body.var(static_cast<std::uint64_t>(std::max<std::int64_t>(0, at_ms)));
    body.raw(events_);
    ByteWriter w;
    w.var(body.size());
    w.u32(crc32c(body.bytes()));
    w.raw(body.bytes());
    return std::move(w.bytes());
}

// ---- the other side of EventFrame ----

bool EventCursor::refuse(const char *what) {
    status_ = damaged(what);
    frame_bytes_ = 0;
    return false;
}

bool EventCursor::open_frame() {
    ByteReader head(log_);
    const std::uint64_t length = head.var();
    const std::uint32_t sum = head.u32();
    if (!head.good() && log_.size() >= most_head) return refuse("a frame has no length");
    if (head.good() && length > max_body) return refuse("a frame is impossibly long");
    if (!head.good() || length > head.left()) return false;  // the rest of it is to come
    const std::string_view body = head.raw(length);
    if (crc32c(body) != sum) return refuse("a checksum does not match");
    body_ = ByteReader(body);
    if (body_.u8() != version) return refuse("this version cannot read its format");
    at_ms_ = static_cast<std::int64_t>(std::min<std::uint64_t>(body_.var(), INT64_MAX));
    grain_ = 0;
    hosts_.clear();
    if (!body_.good()) return refuse("a frame cannot be decoded");
    frame_bytes_ = log_.size() - head.left();
    return true;
}

void EventCursor::get_grain(Event &e) {
    const std::int64_t step = body_.svar();
    if (step > INT32_MAX || step < -INT32_MAX) body_.spoil();
    grain_ += body_.good() ? step : 0;
    if (grain_ < 0 || grain_ > INT32_MAX) body_.spoil();
    e.grain = body_.good() ? static_cast<std::int32_t>(grain_) : 0;
}

// A name is copied to each event that refers to it: a long one would be multiplied.
void EventCursor::get_host(Event &e) {
    const std::uint64_t which = body_.var();
    if (which == 0) {
        const std::string_view name = body_.raw(body_.var());
        if (name.size() > limits::name_bytes) body_.spoil();
        if (body_.good()) hosts_.emplace_back(name);
    }
    if (which > hosts_.size()) body_.spoil();
    if (body_.good()) e.host = which == 0 ? hosts_.back() : hosts_[which - 1];
}

void EventCursor::decode(Event &e) {
    const std::uint8_t kind = body_.u8();
    if (kind < 1 || kind > static_cast<std::uint8_t>(last_event_kind)) body_.spoil();
    if (!body_.good()) return;
    e.kind = static_cast<EventKind>(kind);
    e.at_ms = at_ms_;
    e.grain = -1;
    e.number = 0;
    e.code = e.signal = 0;
    e.host.clear(), e.text.clear(), e.detail.clear();
    const unsigned parts = parts_of(e.kind);
    if (parts & has_grain) get_grain(e);
    if (parts & has_host) get_host(e);
    if (parts & has_number) body_.get_var(e.number);
    if (parts & has_end) {
        body_.get_svar(e.code);
        body_.get_svar(e.signal);
    }
    if (parts & has_text) e.text = body_.raw(body_.var());
    if (parts & has_detail) e.detail = body_.raw(body_.var());
}

bool EventCursor::next(Event &event) {
    while (status_) {
        if (frame_bytes_ == 0 && (log_.empty() || !open_frame())) return false;
        if (!body_.at_end()) {
            decode(event);
            return body_.good() || refuse("a frame cannot be decoded");
        }
        log_.remove_prefix(std::exchange(frame_bytes_, 0));
    }
    return false;
}

// Each frame is read through before any of it is given out.
Status take_events(std::string_view &log, const EventSink &each) {
    Event event;
    while (!log.empty()) {
        EventCursor ahead(log);
        while (ahead.left().size() == log.size() && ahead.next(event)) continue;
        if (ahead.left().size() == log.size()) return ahead.status();
        EventCursor frame(log.substr(0, log.size() - ahead.left().size()));
        while (frame.next(event)) each(event);
        log = ahead.left();
    }
    return Status::ok();
}

Status take_events(std::string_view &log, std::vector<Event> &events) {
    return take_events(log, [&](const Event &event) { events.push_back(event); });
}

// ---- as lines of JSON: `dcs session log -o json`, and the file `log` of an export ----

std::string to_line(const Event &e) {
    char time[32];
    const auto seconds = static_cast<long long>(e.at_ms / 1000);
    std::snprintf(time, sizeof time, "%lld.%03d", seconds, static_cast<int>(e.at_ms % 1000));
    std::string r = std::string("{\"time_s\":") + time + ",\"event\":" + json_string(name_of(e.kind));
    if (parts_of(e.kind) & has_grain) r += ",\"grain\":" + std::to_string(e.grain);
    if (parts_of(e.kind) & has_host) r += ",\"host\":" + json_string(e.host);
    if (const char *key = row_of(e.kind).number) r += std::string(",\"") + key + "\":" + std::to_string(e.number);
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
