#include "demand_options.h"

#include <algorithm>
#include <climits>
#include <cmath>
#include <variant>

namespace dcs::commands {
namespace {

using D = wire::Demands;
struct Demand {
    OptionRow option;  // its bounds are the field's; where 0 is "not said" it begins at 1
    std::variant<std::int32_t D::*, std::uint32_t D::*, bool D::*> field;
    const char *name = "";  // of the field
};
constexpr Takes from_1 = whole_number(1, INT_MAX), from_0 = whole_number(0, INT_MAX);
constexpr Demand demands[] = {
    {{"class", 0, "MASK", class_mask(0), "only hosts of these classes (a mask such as 0x3; default any)",
      "Where and how often a grain runs"}, &D::host_class},
    {{"cores", 0, "N", from_1, "cores that it keeps busy (counts as 1 when not said)"}, &D::cores, "cores"},
    {{"memory", 0, "MB", from_1, "megabytes that it must find free on a host"}, &D::memory_mb, "memory_mb"},
    {{"thrash", 0, "N", from_0, "expected memory in half megabytes; a host with less free memory is left alone"},
     &D::thrash, "thrash"},
    {{"attempts", 0, "N", from_1, "run it again after a failure, N times in all (default 1: a failure is a result)"},
     &D::attempts, "attempts"},
    {{"wall", 0, "S", seconds_from(0.001),
      "longest run, in seconds (also 90m, 1:30:00); a longer one is ended and has failed"}, &D::wall_s},
    {{"time", 0, "LIMIT", seconds_from(0.001), "the same as --wall"}, &D::wall_s},
    {{"notice", 0, "M", from_0, "minutes of warning that it gets before it must have written a checkpoint"}, &D::notice,
     "notice"},
    {{"urgent", 0, nullptr, {}, "to the front of the session's queue"}, &D::urgent},
};

}  // namespace

OptionTable with_demands(OptionTable options) {
    for (const Demand &demand : demands) {
        options.push_back(demand.option);
        if (demand.name[0] == '\0') continue;
        const wire::Bounds bounds = wire::bounds_of_demand(demand.name);
        options.back().takes.least = std::max(demand.option.takes.least, static_cast<double>(bounds.least));
        options.back().takes.most = static_cast<double>(bounds.greatest);
    }
    return options;
}

wire::Demands demands_of(const Arguments &arguments) {
    wire::Demands said;
    said.attempts = 1;
    for (const auto &[option, field, name] : demands) {
        if (!arguments.has(option.name)) continue;
        if (const auto flag = std::get_if<bool D::*>(&field)) said.**flag = true;
        else if (const auto mask = std::get_if<std::uint32_t D::*>(&field))
            said.**mask = static_cast<std::uint32_t>(*arguments.number(option.name));
        else if (const auto number = std::get_if<std::int32_t D::*>(&field))
            said.**number = static_cast<std::int32_t>(option.takes.kind == Takes::Kind::seconds
                                                          ? std::ceil(*arguments.seconds(option.name))
                                                          : static_cast<double>(*arguments.number(option.name)));
    }
    return said;
}

void put_into(d_grain &grain, const wire::Demands &said) {
    grain.host_class = said.host_class;
    grain.attempts = said.attempts;
    grain.cores = said.cores;
    grain.memory_mb = said.memory_mb;
    grain.wall_s = said.wall_s;
    grain.thrash = said.thrash;
    grain.notice = said.notice;
    grain.urgent = said.urgent;
}

}  // namespace dcs::commands
