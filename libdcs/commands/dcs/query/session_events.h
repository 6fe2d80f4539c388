#pragma once
// The event log of a session, as the scheduler has it.
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "scheduler.h"
#include "wire/history.h"

namespace dcs::commands {

// What follows `offset`, at most limits::fetch_chunk_bytes; a failure if the log has become shorter than that.
Result<wire::Piece> piece_of_log(const std::string &user, std::int32_t session, std::uint64_t offset);

class EventSource {
public:
    explicit EventSource(const Session &session) : user_(session.user), number_(session.session) {}
    // The events since the last call, all that are there by now; empty: none. io_error: it is damaged, and what stands
    // before the damage has been given out, or is in `events`.
    Status read(std::vector<wire::Event> &events);
    // The same, each as it comes: a log has more events than there may be memory for.
    Status read(const wire::EventSink &each);

private:
    std::string user_;
    std::int32_t number_;
    std::uint64_t offset_ = 0;
    std::string rest_;  // the beginning of a frame
};

// All of it. Fails too if the log cannot be true (our own bug, or an edited import).
Result<wire::History> history_of(const Session &session);
// Of these grains only, in memory of their number.
Result<wire::History> history_of(const Session &session, const std::set<std::int32_t> &grains);

// For people: "grain 7 started on h1".
std::string sentence_of(const wire::Event &event);
std::string local_time(std::int64_t at_ms);  // "2026-03-01 12:00:00.123"

// When a grain was submitted, when it ran and when it ended, by the scheduler's clock.
struct GrainTimes {
    std::int64_t submitted_ms = -1, started_ms = -1, ended_ms = -1;  // -1: not, or not known; the start of its last run
    double elapsed_s = 0;                                            // on hosts, in all runs
    int runs = 0;
};
// starts: its row's; the log may lack runs, as of an import, and has stays in which it was killed before it began.
// now_ms: the end so far of a run that has not ended.
GrainTimes times_of(const wire::GrainHistory &grain, int starts, std::int64_t now_ms);

std::string times_text(const GrainTimes &times);  // lines as of grain_facts
// {"submitted_s":...,"started_s":...,"ended_s":...,"elapsed_s":...}, null for what is not known. nullptr: no event log.
std::string json_of(const GrainTimes *times);

}  // namespace dcs::commands
