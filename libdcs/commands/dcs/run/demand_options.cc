#include "demand_options.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <type_traits>

#include "base/resources.h"
#include "commands/dcs/query/scheduler.h"

namespace dcs::commands {
namespace {

using wire::DemandRow;
using wire::Unit;
constexpr int attempts_here = 1;  // a failure of the program is a result

// What --help calls a value of the unit, and says of it behind its meaning.
struct UnitWords {
    const char *value, *hint;
};
UnitWords words_of(Unit unit) {
    switch (unit) {
    case Unit::flag: return {nullptr, ""};
    case Unit::mask: return {"CLASS[,..]", " (names of the host table, or a mask such as 0x3)"};
    case Unit::megabytes: return {"MB", " (also 512m, 4G)"};
    case Unit::seconds: return {"S", " (also 90m, 1:30:00, 1-12:00:00)"};
    case Unit::minutes: return {"M", ""};
    case Unit::resources: return {"NAME=N[,..]", ""};
    case Unit::number:
    case Unit::half_megabytes: return {"N", ""};
    }
    return {};
}

Takes takes(const DemandRow &row) {
    if (row.unit == Unit::mask) return class_names_or_mask;
    if (row.unit == Unit::seconds) return seconds_from(static_cast<double>(row.least));
    if (row.unit == Unit::megabytes) return megabytes_from(row.least, row.greatest);
    if (row.unit == Unit::resources) return resource_amounts;
    return row.unit == Unit::flag ? Takes{} : whole_number(row.least, row.greatest);
}

std::string help_of(const DemandRow &row) {
    const bool differs = row.name == std::string_view("attempts");
    return std::string(row.meaning) + words_of(row.unit).hint +
           (differs ? " (default " + std::to_string(attempts_here) + ": a failure is a result)" : "");
}

// Of an option that is given several times; of each name the last one counts.
std::string all_resources(const Arguments &arguments, std::string_view option) {
    Amounts all;
    for (const auto &[name, value] : arguments.options)
        if (const auto amounts = name == option ? amounts_of(value) : Amounts{})
            for (const auto &[resource, amount] : *amounts) all[resource] = amount;
    return resource_text(all);
}

}  // namespace

OptionTable with_demands(OptionTable options) {
    static const auto help = [] {
        std::array<std::string, std::size(wire::demand_rows)> all;
        std::transform(std::begin(wire::demand_rows), std::end(wire::demand_rows), all.begin(), help_of);
        return all;
    }();
    const char *group = "Where and how often a grain runs";
    for (std::size_t i = 0; i < help.size(); ++i) {
        const DemandRow &row = wire::demand_rows[i];
        const Given given = row.unit == Unit::resources ? Given::many : Given::once;
        options.push_back(
            {row.option, 0, words_of(row.unit).value, takes(row), help[i].c_str(), i == 0 ? group : "", given});
    }
    options.push_back({"time", 0, "LIMIT", seconds_from(0), "the same as --wall"});
    return options;
}

bool is_demand(std::string_view option) {
    const auto says = [option](const DemandRow &row) { return option == row.option; };
    return option == "time" || std::any_of(std::begin(wire::demand_rows), std::end(wire::demand_rows), says);
}

std::optional<Failure> take_demands(const Arguments &arguments, wire::Demands &said) {
    said.attempts = attempts_here;
    wire::each_demand(said, [&arguments]<class T>(const DemandRow &row, T &value) {
        if (!arguments.has(row.option) || row.unit == Unit::mask) return;
        if constexpr (std::is_same_v<T, bool>) value = true;
        else if constexpr (std::is_same_v<T, std::string>) value = all_resources(arguments, row.option);
        else if (row.unit == Unit::seconds) value = static_cast<T>(std::ceil(*arguments.seconds(row.option)));
        else if (row.unit == Unit::megabytes) value = static_cast<T>(*arguments.megabytes(row.option));
        else value = static_cast<T>(*arguments.number(row.option));
    });
    if (std::string wrong = wire::out_of_range(said); !wrong.empty()) return usage_failure(std::move(wrong));
    if (arguments.has("time")) said.wall_s = static_cast<std::int32_t>(std::ceil(*arguments.seconds("time")));
    return take_class(arguments, said.host_class);
}

}  // namespace dcs::commands
