#pragma once
// What a grain demands of the pool and of the hosts that run it, as its submission says it. One struct: the calls, the
// messages, the scheduler's decisions, the records and the rows hold it, and its list of fields says what each of
// them writes and reads, and which values there are.
#include <cstdint>
#include <string>
#include <string_view>

#include "base/limits.h"
#include "wire/archive_rules.h"

namespace dcs::wire {

struct Demands {
    std::uint32_t host_class = 0;  // mask; 0: any class
    std::int32_t thrash = 0;       // expected memory, half megabytes
    bool urgent = false;
    std::int32_t notice = 0;       // minutes of warning before a checkpoint
    std::int32_t attempts = limits::attempts;
    std::int32_t cores = 0;        // that it keeps busy; 0 counts as 1
    std::int32_t memory_mb = 0;    // that it must find free beside what running grains asked for, and may use
    std::int32_t wall_s = 0;       // longest run of one incarnation, beyond it the grain has failed; 0: no limit
    bool operator==(const Demands &) const = default;
};
template <> inline constexpr bool is_part<Demands> = true;

// "attempts is 0: it must be 1 to 255"; empty if there is nothing of that kind.
std::string out_of_range(const Demands &demands);
// Which numbers a field may have, by its name.
struct Bounds {
    std::int64_t least = 0, greatest = 0;
};
Bounds bounds_of_demand(std::string_view field);
// The oldest form that can say them all: a peer that reads only older ones is not to be asked for them.
Form form_needed(const Demands &demands);

// clang-format off
template <class A> void serialize(A &a, Demands &x, unsigned) {
    a & DCS_FIELD(host_class) & within(0, INT32_MAX, DCS_FIELD(thrash)) & DCS_FIELD(urgent)
      & within(0, INT32_MAX, DCS_FIELD(notice)) & within(1, 255, DCS_FIELD(attempts))
      & within(0, limits::cores, DCS_FIELD(cores)) & within(0, INT32_MAX, DCS_FIELD(memory_mb))
      & within(0, INT32_MAX, DCS_FIELD(wall_s));
}
// clang-format on

}  // namespace dcs::wire
