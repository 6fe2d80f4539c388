#include "wire/event_log.h"

#include <algorithm>

#include "base/bytes.h"
#include "base/checksum.h"

namespace dcs::wire {
namespace {

constexpr std::uint8_t version = 1;
// Far above what a turn does; a length beyond it is damage.
constexpr std::uint64_t max_body = 64u << 20;
constexpr std::size_t most_head = 10 + 4;  // the length and the checksum of a frame

// What an event of a kind has, in this order.
enum Has : unsigned { has_grain = 1, has_host = 2, has_number = 4, has_end = 8, has_text = 16, has_detail = 32 };

unsigned parts_of(EventKind kind) {
    switch (kind) {
    case EventKind::opened: return has_text;
    case EventKind::resumed:
    case EventKind::reopened:
    case EventKind::closed:
    case EventKind::imported: return 0;
    case EventKind::submitted:
    case EventKind::killed:
    case EventKind::undone:
    case EventKind::forgotten: return has_grain;
    case EventKind::started: return has_grain | has_host | has_number;
    case EventKind::checkpoint:
    case EventKind::shown: return has_grain | has_number;
    case EventKind::left: return has_grain | has_host | has_text | has_detail;
    case EventKind::finished: return has_grain | has_number | has_end;
    case EventKind::handed_out:
    case EventKind::set_back: return has_number;
    }
    return 0;
}

void put_text(ByteWriter &w, std::string_view text) {
    w.var(text.size());
    w.raw(text);
}
std::string get_text(ByteReader &r) { return std::string(r.raw(r.var())); }

template <class Number> void get_var(ByteReader &r, Number &out) {
    const std::uint64_t read = r.var();
    out = static_cast<Number>(read);
    if (static_cast<std::uint64_t>(out) != read) r.spoil();
}
void get_svar(ByteReader &r, std::int32_t &out) {
    const std::int64_t read = r.svar();
    out = static_cast<std::int32_t>(read);
    if (out != read) r.spoil();
}

// The other side of EventFrame::add.
struct FrameReader {
    ByteReader r;
    std::int64_t at_ms = 0, grain = 0;
    std::vector<std::string> hosts{};

    void get_grain(Event &e) {
        const std::int64_t step = r.svar();
        if (step > INT32_MAX || step < -INT32_MAX) r.spoil();
        grain += r.good() ? step : 0;
        if (grain < 0 || grain > INT32_MAX) r.spoil();
        e.grain = r.good() ? static_cast<std::int32_t>(grain) : 0;
    }
    void get_host(Event &e) {
        const std::uint64_t which = r.var();
        if (which == 0) hosts.push_back(get_text(r));
        if (which > hosts.size()) r.spoil();
        if (r.good()) e.host = which == 0 ? hosts.back() : hosts[which - 1];
    }
    Event next() {
        Event e;
        const std::uint8_t kind = r.u8();
        if (kind < 1 || kind > static_cast<std::uint8_t>(last_event_kind)) r.spoil();
        if (!r.good()) return e;
        e.kind = static_cast<EventKind>(kind);
        e.at_ms = at_ms;
        const unsigned parts = parts_of(e.kind);
        if (parts & has_grain) get_grain(e);
        if (parts & has_host) get_host(e);
        if (parts & has_number) get_var(r, e.number);
        if (parts & has_end) {
            get_svar(r, e.code);
            get_svar(r, e.signal);
        }
        if (parts & has_text) e.text = get_text(r);
        if (parts & has_detail) e.detail = get_text(r);
        return e;
    }
};

Status damaged(const char *what) { return fail(Code::io_error, std::string("the event log: ") + what); }

}  // namespace

const char *name_of(EventKind kind) {
    switch (kind) {
    case EventKind::opened: return "opened";
    case EventKind::resumed: return "resumed";
    case EventKind::reopened: return "reopened";
    case EventKind::closed: return "closed";
    case EventKind::imported: return "imported";
    case EventKind::submitted: return "submitted";
    case EventKind::started: return "started";
    case EventKind::checkpoint: return "checkpoint";
    case EventKind::left: return "left";
    case EventKind::finished: return "finished";
    case EventKind::killed: return "killed";
    case EventKind::handed_out: return "handed_out";
    case EventKind::shown: return "shown";
    case EventKind::undone: return "undone";
    case EventKind::forgotten: return "forgotten";
    case EventKind::set_back: return "set_back";
    }
    return "?";
}

void EventFrame::add(const Event &e) {
    ByteWriter w;
    const unsigned parts = parts_of(e.kind);
    w.u8(static_cast<std::uint8_t>(e.kind));
    if (parts & has_grain) {
        w.svar(std::int64_t{e.grain} - grain_);
        grain_ = e.grain;
    }
    if (parts & has_host) {
        const auto named = std::find(hosts_.begin(), hosts_.end(), e.host);
        w.var(named == hosts_.end() ? 0 : static_cast<std::uint64_t>(named - hosts_.begin()) + 1);
        if (named == hosts_.end()) {
            put_text(w, e.host);
            hosts_.push_back(e.host);
        }
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

Status take_events(std::string_view &log, std::vector<Event> &events) {
    while (!log.empty()) {
        ByteReader head(log);
        const std::uint64_t length = head.var();
        const std::uint32_t sum = head.u32();
        if (!head.good() && log.size() >= most_head) return damaged("a frame has no length");
        if (head.good() && length > max_body) return damaged("a frame is absurdly long");
        if (!head.good() || length > head.left()) return Status::ok();  // the rest of it is to come
        const std::string_view body = head.raw(length);
        if (crc32c(body) != sum) return damaged("a checksum does not fit");
        FrameReader reader{ByteReader(body)};
        if (reader.r.u8() != version) return damaged("it has a format that this version does not read");
        std::uint64_t at = reader.r.var();
        reader.at_ms = static_cast<std::int64_t>(std::min<std::uint64_t>(at, INT64_MAX));
        const std::size_t known = events.size();
        while (reader.r.good() && !reader.r.at_end()) events.push_back(reader.next());
        if (!reader.r.good()) {
            events.resize(known);
            return damaged("a frame does not decode");
        }
        log.remove_prefix(log.size() - head.left());
    }
    return Status::ok();
}

}  // namespace dcs::wire
