#pragma once
// Words of a command line that denote a time, a number or a mode. An error names the option, the fault of its value
// and a valid example.
#include <cstdint>
#include <string>

#include "base/status.h"

namespace dcs::lock_command {

constexpr std::int64_t second_ns = 1'000'000'000, minute_ns = 60 * second_ns;

// "90", "1.5h", "30s": s m h d, fractions allowed; nanoseconds. `bare_unit`: the unit of a number without one.
Result<std::int64_t> duration_of(const std::string &option, const std::string &text, std::int64_t bare_unit);
// "2s,5s,10s", or one time for all three: after INT, TERM and KILL.
Status grace_of(const std::string &text, std::int64_t (&after)[3]);
Result<int> whole_number_of(const std::string &option, const std::string &text, int least, int most);
// "10", "50%" of the processors this process may use, or "@FILE", whose first word is one of these.
Result<int> count_of(const std::string &option, const std::string &text);
Result<unsigned> mode_of(const std::string &text);

std::string spoken(std::int64_t nanoseconds);           // "1.5 h", "12 s", "3 ms"
std::string decimal_seconds(std::int64_t nanoseconds);  // "12.5"
std::string json_seconds(std::int64_t nanoseconds);     // null for locks::no_limit and for -1

}  // namespace dcs::lock_command
