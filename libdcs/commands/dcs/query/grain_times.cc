#include "grain_times.h"

#include <algorithm>

#include "base/json.h"
#include "base/text.h"
#include "commands/dcs/frame/table.h"
#include "commands/dcs/query/session_events.h"

namespace dcs::commands {
namespace {

std::string json_time(std::int64_t at_ms) {
    return at_ms < 0 ? "null" : json_number(static_cast<double>(at_ms) / 1000);
}

}  // namespace

GrainTimes times_of(const wire::GrainHistory &grain, std::int64_t now_ms) {
    GrainTimes times;
    // An import has grains that its log says nothing of.
    if (grain.submitted_ms > 0) times.submitted_ms = grain.submitted_ms;
    times.ended_ms = grain.ended_ms;
    times.runs = static_cast<int>(grain.stays.size());
    if (!grain.stays.empty()) times.started_ms = grain.stays.back().from_ms;
    std::int64_t elapsed_ms = 0;
    for (const wire::Stay &stay : grain.stays)
        elapsed_ms += std::max<std::int64_t>(0, (stay.to_ms < 0 ? now_ms : stay.to_ms) - stay.from_ms);
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
