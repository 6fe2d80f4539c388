#pragma once
// How people name sessions and grains: NUM, USER/NUM, last, done, all; SES:G, SES:1-20, SES:1,5-7,
// SES:all.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace dcs::commands {

struct SessionSelector {
    enum class Which { number, last, all };
    Which which = Which::number;
    std::string user;           // empty: the caller
    std::int32_t number = 0;    // Which::number only
    bool of_all_users = false;  // Which::all without USER/
    bool done = false;          // of Which::all those that are done
    bool to_change = false;     // then Which::last is refused where a later session was removed; else that is said
};

struct GrainRange {
    std::int32_t first = 0, last = 0;
};

struct GrainSelector {
    SessionSelector session;
    std::vector<GrainRange> ranges;  // empty: all grains
    bool has(std::int32_t grain) const;
    bool one() const { return ranges.size() == 1 && ranges[0].first == ranges[0].last; }
};

Result<SessionSelector> session_selector(std::string_view text);
// `bare_session`: SES alone means all its grains, and SES may be all sessions; otherwise it is an error.
Result<GrainSelector> grain_selector(std::string_view text, bool bare_session);

}  // namespace dcs::commands
