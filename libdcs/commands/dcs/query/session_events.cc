#include "session_events.h"

#include <algorithm>
#include <cstdio>
#include <ctime>

#include "base/limits.h"
#include "commands/dcs/frame/table.h"
#include "base/json.h"

namespace dcs::commands {
namespace {

std::string json_time(std::int64_t at_ms) {
    return at_ms < 0 ? "null" : json_number(static_cast<double>(at_ms) / 1000);
}

}  // namespace

Result<wire::Piece> piece_of_log(const std::string &user, std::int32_t session, std::uint64_t offset) {
    wire::Fetch fetch;
    fetch.user = user;
    fetch.session = session;
    fetch.stream = wire::Stream::log;
    fetch.offset = offset;
    fetch.max = limits::fetch_chunk_bytes;
    auto piece = ask_any<wire::Piece>(fetch);
    if (piece && piece->total < offset) return fail(Code::io_error, "the session was replaced while its log was read");
    return piece;
}

Status EventSource::read(const wire::EventSink &each) {
    for (;;) {
        const auto piece = piece_of_log(user_, number_, offset_);
        if (!piece || piece->bytes.empty()) return piece.status();
        offset_ += piece->bytes.size();
        rest_ += piece->bytes;
        std::string_view left = rest_;
        const Status s = wire::take_events(left, each);
        rest_.erase(0, rest_.size() - left.size());
        if (!s) return s;
    }
}

Status EventSource::read(std::vector<wire::Event> &events) {
    return read([&](const wire::Event &event) { events.push_back(event); });
}

Result<wire::History> history_of(const Session &session) {
    wire::History history;
    const Status s = EventSource(session).read([&](const wire::Event &event) { history.take(event); });
    if (!s) return s;
    return history;
}

Result<wire::History> history_of(const Session &session, const std::set<std::int32_t> &grains) {
    wire::History history;
    const Status s = EventSource(session).read([&](const wire::Event &event) {
        if (event.kind == wire::EventKind::imported || grains.count(event.grain) > 0) history.take(event);
    });
    if (!s) return s;
    return history;
}

namespace {

std::string of_grain(const wire::Event &e) {
    const auto n = [](auto value) { return std::to_string(value); };
    switch (e.kind) {
    case wire::EventKind::submitted: return "submitted";
    case wire::EventKind::started: return "handed to " + e.host;  // which may start it a little later
    case wire::EventKind::checkpoint: return "has a checkpoint, increment " + n(e.number);
    case wire::EventKind::left:
        return "left " + e.host + ": " + (e.text.empty() ? "called back before it started" : e.text) +
               (e.detail.empty() ? "" : ", " + e.detail);
    case wire::EventKind::finished:
        return "finished as result " + n(e.number) +
               (e.signal != 0 ? ", signal " + n(e.signal)
                : e.code != 0 ? ", exit code " + n(e.code)
                              : "");
    case wire::EventKind::killed: return "killed";
    case wire::EventKind::shown: return "shown to the control program as of increment " + n(e.number);
    case wire::EventKind::undone: return "undone: it runs again";
    case wire::EventKind::forgotten: return "forgotten: it was never submitted";
    default: return wire::name_of(e.kind);
    }
}

}  // namespace

std::string sentence_of(const wire::Event &e) {
    if (e.grain >= 0) return "grain " + std::to_string(e.grain) + " " + of_grain(e);
    switch (e.kind) {
    case wire::EventKind::opened: return "session opened by " + shortened(e.text, 32);  // dcs map has longer ones
    case wire::EventKind::resumed: return "session resumed: its control program restarted";
    case wire::EventKind::imported: return "session imported";
    case wire::EventKind::handed_out:
        return "results up to " + std::to_string(static_cast<std::int64_t>(e.number) - 1) + " handed out";
    case wire::EventKind::set_back: return "set back: " + std::to_string(e.number) + " results count as handed out";
    default: return std::string("session ") + wire::name_of(e.kind);
    }
}

std::string local_time(std::int64_t at_ms) {
    char fraction[16];
    std::snprintf(fraction, sizeof fraction, ".%03d", static_cast<int>(at_ms % 1000));
    return moment_text("%Y-%m-%d %H:%M:%S", static_cast<std::time_t>(at_ms / 1000)) + fraction;
}

GrainTimes times_of(const wire::GrainHistory &grain, int starts, std::int64_t now_ms) {
    GrainTimes times;
    // An import has grains that its log says nothing of.
    if (grain.submitted_ms > 0) times.submitted_ms = grain.submitted_ms;
    times.ended_ms = grain.ended_ms;
    std::int64_t elapsed_ms = 0;
    for (const wire::Stay &stay : grain.stays) {
        if (starts == 0 || (stay.to_ms >= 0 && !wire::has_run(stay.reason))) continue;
        times.runs = starts;
        times.started_ms = stay.from_ms;
        elapsed_ms += std::max<std::int64_t>(0, (stay.to_ms < 0 ? now_ms : stay.to_ms) - stay.from_ms);
    }
    times.elapsed_s = static_cast<double>(elapsed_ms) / 1000;
    return times;
}

std::string times_text(const GrainTimes &times) {
    std::string text;
    if (times.submitted_ms >= 0) text += "submitted    " + local_time(times.submitted_ms) + "\n";
    if (times.started_ms >= 0)
        text += "started      " + local_time(times.started_ms) +
                (times.runs > 1 ? ", the last of " + std::to_string(times.runs) + " starts" : "") + "\n";
    if (times.ended_ms >= 0) text += "ended        " + local_time(times.ended_ms) + "\n";
    if (times.runs > 0)
        text += "elapsed      " + seconds_text(times.elapsed_s) + (times.runs > 1 ? " in all runs" : "") + "\n";
    return text;
}

std::string json_of(const GrainTimes *times) {
    JsonObject json;
    json.add_raw("submitted_s", times == nullptr ? "null" : json_time(times->submitted_ms));
    json.add_raw("started_s", times == nullptr ? "null" : json_time(times->started_ms));
    json.add_raw("ended_s", times == nullptr ? "null" : json_time(times->ended_ms));
    json.add_raw("elapsed_s", times == nullptr ? "null" : json_number(times->elapsed_s));
    return json.text();
}

}  // namespace dcs::commands
