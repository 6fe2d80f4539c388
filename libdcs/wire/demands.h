#pragma once
// What a grain demands of the pool and of the hosts that run it, as its submission says it. Everything about a demand
// is in one list: the calls, the messages, the scheduler's decisions, the records, the rows, the options of
// commands and the tables of docs/ are made from it. By hand are written the fields of the same name in d_grain and
// d_grain_row of C, in dcs.hpp and in the Python package.
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>

#include "base/limits.h"
#include "wire/archive_rules.h"

namespace dcs::wire {

enum class Unit : std::uint8_t { number, mask, flag, megabytes, half_megabytes, seconds, minutes, resources };

// A row each: type, name, value if nothing is said, least and greatest value (both 0: any), form that it came with;
// the name of its option, its unit, the words of `dcs grain show` for a value that is not the default (% is the
// value; of a number the noun; "": said elsewhere), what it means. The place in the list is the field's number: a new
// one is appended.
// clang-format off
#define DCS_DEMANDS(demand)                                                                                           \
    demand(std::uint32_t, host_class, 0, 0, 0, 8, "class", mask, "", "only hosts of these classes; 0: any")           \
    demand(std::int32_t, thrash, 0, 0, INT32_MAX, 8, "thrash", half_megabytes, "hosts with % free",                   \
           "expected memory in half megabytes; hosts with less free memory are avoided")                              \
    demand(bool, urgent, false, 0, 0, 8, "urgent", flag, "urgent", "put at the front of the session's queue")         \
    demand(std::int32_t, notice, 0, 0, INT32_MAX, 8, "notice", minutes, "% of notice",                                \
           "minutes of warning before the grain must have written a checkpoint")                                      \
    demand(std::int32_t, attempts, limits::attempts, 1, 255, 8, "attempts", number, "",                               \
           "number of failed runs after which the grain is given up; one over its time or memory limit is at once")   \
    demand(std::int32_t, cores, 0, 0, limits::cores, 8, "cores", number, "core",                                      \
           "cores that the grain uses; 0 counts as 1")                                                                \
    demand(std::int32_t, memory_mb, 0, 0, INT32_MAX, 8, "memory", megabytes, "% of memory",                           \
           "megabytes that the grain may use, free on the host beside the demands of running grains")                 \
    demand(std::int32_t, wall_s, 0, 0, INT32_MAX, 8, "wall", seconds, "at most % a run",                              \
           "time limit of a run, in seconds; a longer run is ended, has failed, and is not repeated; 0: no limit")    \
    demand(std::string, resources, "", 0, 0, 9, "resource", resources, "%",                                           \
           "named resources that the grain uses, such as gpu=1,scratch_gb=20")
// clang-format on

struct Demands {
#define DCS_DEMAND(type, name, unless_said, ...) type name = unless_said;
    DCS_DEMANDS(DCS_DEMAND)
#undef DCS_DEMAND
    bool operator==(const Demands &) const = default;
};
template <> inline constexpr bool is_part<Demands> = true;

// A text is empty unless it is said.
template <class T> constexpr std::int64_t number_unless_said(T value) {
    if constexpr (std::is_pointer_v<T>) return 0;
    else return value;
}

// A row of the list.
struct DemandRow {
    const char *type, *name, *default_text;  // as the list has them
    std::int64_t unless_said, least, greatest;
    Form since;
    const char *option;
    Unit unit;
    const char *shown, *meaning;
};
inline constexpr DemandRow demand_rows[] = {
#define DCS_DEMAND(type, name, unless_said, least, greatest, since, option, unit, shown, meaning)      \
    {#type,      #name, #unless_said, number_unless_said(unless_said), least, greatest, since, option, \
     Unit::unit, shown, meaning},
    DCS_DEMANDS(DCS_DEMAND)
#undef DCS_DEMAND
};

// f(row, field) for each; `x` has fields of these names: Demands, or a struct of C.
template <class X, class F> void each_demand(X &x, F &&f) {
    std::size_t at = 0;
#define DCS_DEMAND(type, name, ...) f(demand_rows[at++], x.name);
    DCS_DEMANDS(DCS_DEMAND)
#undef DCS_DEMAND
}
// A text that is null is empty; a pointer to one is valid as long as the Demands.
template <class To, class From> void copy_demand(To &to, const From &from) {
    if constexpr (std::is_same_v<To, std::string> && std::is_pointer_v<From>) to = from ? from : "";
    else if constexpr (std::is_pointer_v<To> && !std::is_pointer_v<From>) to = from.empty() ? "" : from.c_str();
    else to = from;
}
// From and to the structs of C.
template <class C> Demands demands_in(const C &from) {
    Demands to;
#define DCS_DEMAND(type, name, ...) copy_demand(to.name, from.name);
    DCS_DEMANDS(DCS_DEMAND)
#undef DCS_DEMAND
    return to;
}
template <class C> void put_demands(const Demands &from, C &to) {
#define DCS_DEMAND(type, name, ...) copy_demand(to.name, from.name);
    DCS_DEMANDS(DCS_DEMAND)
#undef DCS_DEMAND
}

// Whether the value is the default.
template <class T> bool is_unsaid(const DemandRow &row, const T &value) {
    if constexpr (std::is_same_v<T, std::string>) return value.empty();
    else return value == row.unless_said;
}

// "attempts is 0: it must be 1 to 255"; empty if there is nothing of that kind.
std::string out_of_range(const Demands &demands);
// The oldest form that can say them all: a peer that reads only older ones is not to be asked for them.
Form form_needed(const Demands &demands);

template <class T> const FieldOf<T> field_of_demand(const DemandRow &row, T &value) {
    FieldOf<T> field = field_of(row.name, value);
    field.least = row.least;
    field.greatest = row.greatest;
    field.since = row.since;
    if constexpr (std::is_same_v<T, std::string>) field.most = limits::demand_bytes;
    return field;
}
template <class A> void serialize(A &a, Demands &x, unsigned) {
    each_demand(x, [&a](const DemandRow &row, auto &value) { a &field_of_demand(row, value); });
}

}  // namespace dcs::wire
