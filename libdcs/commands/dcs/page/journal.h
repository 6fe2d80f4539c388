#pragma once
// What happened lately in the sessions whose event logs the page's user may read.
#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "wire/message.h"
#include "base/status.h"
#include "commands/dcs/query/scheduler.h"
#include "wire/event_log.h"

namespace dcs::commands::page {

// The event log of a session, followed from its end: a page shows what happens now, and must not read a log of a
// million grains for that.
class LogTail {
public:
    LogTail(std::string user, std::int32_t session) : user_(std::move(user)), session_(session) {}

    // The events since the last call. Of a log that has more than one piece of those, the last piece only; `skipped()`
    // then says so. One or two requests, whatever the log has.
    Status read(const wire::EventSink &each);
    bool skipped() const { return skipped_; }

private:
    Status read_piece(std::uint64_t &total);

    std::string user_;
    std::int32_t session_;
    std::uint64_t offset_ = 0;
    std::string rest_;  // the beginning of a frame
    bool skipped_ = false;
};

// The first whole frame in a piece that begins anywhere in a log; npos: there is none.
std::size_t first_frame(std::string_view piece);

using SessionName = std::pair<std::string, std::int32_t>;  // user, number
inline std::string to_text(const SessionName &name) { return name.first + "/" + std::to_string(name.second); }

struct Run {  // of a grain on a host, without a break
    SessionName session;
    std::int32_t grain = 0;
    std::string host;
    std::int64_t from_ms = 0, to_ms = -1;  // -1: it still runs
    std::vector<std::int64_t> checkpoints_ms;
    std::string reason;  // why it ended; "finished", "killed"
};

struct Happening {
    std::uint64_t number = 0;
    std::int64_t at_ms = 0;
    SessionName session;
    std::int32_t grain = -1;
    std::string text;  // a sentence
};

struct Move {
    std::int64_t at_ms = 0;
    SessionName session;
    std::int32_t grain = 0;
    std::string host, reason, detail;
};

// Times from submission to start, and from start to end, in the buckets of a histogram.
struct Spread {
    static constexpr std::array<double, 10> bounds_s = {0.1, 1, 5, 15, 60, 300, 1800, 7200, 43200, 259200};
    std::array<std::uint64_t, bounds_s.size() + 1> counts = {};
    double sum_s = 0;
    void take(double s);
};

// Newest first: the logs of sessions are read one after another.
template <class T> std::vector<const T *> latest_of(const std::deque<T> &all, std::size_t most) {
    std::vector<const T *> latest;
    for (auto it = all.rbegin(); it != all.rend(); ++it) latest.push_back(&*it);
    std::stable_sort(latest.begin(), latest.end(), [](const T *a, const T *b) { return a->at_ms > b->at_ms; });
    if (latest.size() > most) latest.resize(most);
    return latest;
}

class Journal {
public:
    static constexpr std::int64_t window_ms = 3600 * 1000;
    static constexpr std::size_t most_runs = 4000, most_happenings = 200, most_moves = 200;

    explicit Journal(std::int64_t now_ms);

    // Reads the logs of the sessions that may have new events; of so many at a time that a round stays short.
    void follow(const std::vector<Session> &rows, std::int64_t now_ms);

    const std::deque<Run> &ended() const { return ended_; }  // of the last hour, in the order of their ends
    std::vector<const Run *> running() const;
    const std::deque<Happening> &happenings() const { return happenings_; }  // as they were read: latest_of()
    const std::deque<Move> &moves() const { return moves_; }                 // the same
    bool incomplete() const { return incomplete_; }  // there were more runs, or a longer log, than are kept
    bool of_others() const { return refused_ > 0; }  // sessions whose logs the scheduler does not show to this user
    // Grains finished per second lately; nothing if that says nothing.
    std::optional<double> rate_of(const SessionName &session) const;

    // Counted since the page's start.
    // By reason: each word that the scheduler has, and "other" for those that only imported logs have.
    const std::map<std::string, std::uint64_t> &departures() const { return departures_; }
    std::uint64_t checkpoints() const { return checkpoints_; }
    const Spread &waits() const { return waits_; }
    const Spread &runtimes() const { return runtimes_; }

private:
    struct Followed {
        LogTail tail;
        std::string read_as;  // the row's figures when its log was read last
        bool refused = false;
        std::int64_t read_ms = 0;
        std::map<std::int32_t, Run> running;
        std::map<std::int32_t, std::int64_t> submitted_ms;           // of grains that have not started
        std::deque<std::pair<std::int64_t, std::int32_t>> progress;  // when, finished
    };
    void take(const SessionName &name, Followed &session, const wire::Event &event);
    void end_run(Followed &session, const wire::Event &event, const std::string &reason);
    void note_progress(Followed &session, const wire::SessionRow &row, std::int64_t now_ms);
    void forget(const std::set<SessionName> &there, std::int64_t now_ms);

    const std::int64_t begun_ms_;
    std::map<SessionName, Followed> followed_;
    std::deque<Run> ended_;
    std::deque<Happening> happenings_;
    std::deque<Move> moves_;
    std::map<std::string, std::uint64_t> departures_;
    std::uint64_t checkpoints_ = 0, happened_ = 0;
    Spread waits_, runtimes_;
    std::size_t refused_ = 0, waiting_ = 0;
    bool incomplete_ = false;
};

}  // namespace dcs::commands::page
