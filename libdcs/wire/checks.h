#pragma once
// What must hold in what users send, beyond the types of its fields; their programs and the scheduler ask the same.
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "wire/session_calls.h"
#include "wire/user_calls.h"

namespace dcs::wire {

// A name below a grain's working directory: relative, no empty part, no "." or "..", no NUL.
bool good_file_name(const std::string &name);
Status check_files(const GrainSpec &spec);
// Its standard input, if that is a content; else null.
const GrainFile *input_of(const GrainSpec &spec);
// Length of its standard input, wherever it lies.
std::uint64_t input_length(const GrainSpec &spec);

// What a call that cannot be done is answered with; `grain`: of a batch, the one because of which.
inline ErrorReply error_reply(Status why, std::int32_t grain = -1) {
    return {static_cast<std::int32_t>(why.code), std::move(why.text), grain};
}

// Of an imported session. The client looks first, to name file and line; the scheduler looks again, because it trusts
// no sender.
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
