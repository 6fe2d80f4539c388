#pragma once
// The event log of a session: what became of it, in order; enough to draw its dataflow graph and the time line
// of its hosts. On disk, and on its way to a reader, it is a row of frames, one for each turn of the
// scheduler that changed the session: var length of the body, u32 CRC-32C of the body, body. A body begins with
// its format's version byte and the time of the turn; its events follow (event_log.cc).
#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/ids.h"
#include "base/status.h"

namespace dcs::wire {

// Why a grain left a host: the words of event logs and rows, in the order of the scheduler's MoveReason.
inline constexpr std::array<const char *, 19> move_reasons = {
    "failed",       "no_program",  "start_failed", "given_back", "usurped",        "host_dead",   "host_lost",
    "host_removed", "host_closed", "gap",          "restarted",  "session_closed", "longer_copy", "over_limit",
    "shut_out",     "thrashed",    "cannot_start", "given_up",   "host_limit"};

// Of the word with which a run ended: the grain has ended, too, and no move follows.
constexpr bool ends_grain(std::string_view word) {
    return word == "finished" || word == "killed" || word == "session_closed";
}

// Recorded: never reordered, only appended.
enum class EventKind : std::uint8_t {
    opened = 1,  // by a control program: `text` is its ident
    resumed,     // the control program began again
    reopened,    // it was closed
    closed,
    imported,  // from here on grains are as the import said, whatever precedes
    submitted,
    started,     // on `host`; `number`: its incarnation
    checkpoint,  // `number`: of the last increment that came with it
    left,        // `host`; `text`: why, a word of docs/SCHEDULING.md; `detail` for people
    finished,    // `code`, `signal`; `number`: its place in the order of finishing
    killed,
    handed_out,  // `number`: so many places of that order were given to the control program by now
    shown,       // to the control program, before it finished: a message, a checkpoint or output; `number`: as of
                 // which increment
    undone,      // it is ready again as if it had never run, by `dcs grain restart --and-after`
    forgotten,   // the same for its submission: it is no more
    set_back     // `number`: only so many places still count as handed out
};
inline constexpr EventKind last_event_kind = EventKind::set_back;
// What an event of a kind has, in this order.
enum Has : unsigned { has_grain = 1, has_host = 2, has_number = 4, has_end = 8, has_text = 16, has_detail = 32 };
unsigned parts_of(EventKind kind);
const char *name_of(EventKind kind);

struct Event {
    EventKind kind = EventKind::opened;
    std::int64_t at_ms = 0;    // wall clock of the turn, since 1970; for people: clocks may step
    std::int32_t grain = -1;   // -1: it is about the session
    std::uint32_t number = 0;  // see the kinds
    std::int32_t code = 0, signal = 0;
    std::string host, text, detail;
    bool operator==(const Event &) const = default;
};

// The events of one turn. What a kind does not have is left out.
class EventFrame {
public:
    void add(const Event &event);
    bool empty() const { return events_.empty(); }
    std::string framed(std::int64_t at_ms) const;

private:
    std::string events_;
    std::map<std::string, std::uint64_t> hosts_;  // named so far: later ones are numbers, from 1
    std::int32_t grain_ = 0;                      // the last one named
};

// Reads a log event by event. Users import logs: reading one takes a constant number of steps for each
// of its bytes, and holds no more than the names of hosts in the frame at hand, and one event.
class EventCursor {
public:
    // `log` outlives the cursor.
    explicit EventCursor(std::string_view log) : log_(log) {}
    // The next one; false: no whole frame follows, or what follows is damaged.
    bool next(Event &event);
    // io_error: a frame is damaged, or made by a newer version. Its events before the damage were given out.
    const Status &status() const { return status_; }
    // What follows the last frame that was given out as a whole.
    std::string_view left() const { return log_; }

private:
    bool open_frame();
    bool refuse(const char *what);
    void decode(Event &event);
    void get_grain(Event &event);
    void get_host(Event &event);

    std::string_view log_;
    std::size_t frame_bytes_ = 0;  // of the frame at hand, with its head; 0: there is none
    ByteReader body_{{}};
    std::int64_t at_ms_ = 0, grain_ = 0;
    std::vector<std::string> hosts_;
    Status status_;
};

using EventSink = std::function<void(const Event &)>;
// Takes whole frames off the front of `log` and gives out their events; what is left is the beginning of another
// frame, or nothing. io_error: a frame is damaged, or made by a newer version; what precedes it was given out, of that
// frame nothing. Costs twice what the cursor does.
Status take_events(std::string_view &log, const EventSink &each);
// Appends them: up to 160 bytes for one of the log.
Status take_events(std::string_view &log, std::vector<Event> &events);

// One JSON object, without a newline, with the keys that its kind has; `time_s` is the wall clock.
std::string to_line(const Event &event);
// The reverse. An error says which key is wrong.
Result<Event> event_of_line(std::string_view line);

}  // namespace dcs::wire
