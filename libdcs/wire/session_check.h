#pragma once
// What must hold in a session that is imported, beyond the types of its keys. The client looks first,
// to name file and line; the scheduler looks again, because it trusts no sender.
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "wire/session_calls.h"

namespace dcs::wire {

struct Wrong {
    std::int32_t grain = -1;  // -1: the session
    std::string why;
    std::int32_t other = -1;  // a grain that it is at odds with
};

class SessionCheck {
public:
    // In the order in which they come, their streams whole.
    std::optional<Wrong> add(const ExportedGrain &g);
    // After the last one.
    std::optional<Wrong> finish(const ExportedSession &head);

private:
    std::vector<std::int32_t> numbers_;                           // ascending
    std::vector<std::pair<std::int64_t, std::int32_t>> results_;  // place, grain
    std::vector<std::pair<std::int64_t, std::int32_t>> queue_;
};

}  // namespace dcs::wire
