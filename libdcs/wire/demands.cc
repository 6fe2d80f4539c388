#include "wire/demands.h"

#include "base/resources.h"
#include "wire/archives.h"

namespace dcs::wire {
namespace {

std::string wrong_number(const DemandRow &row, std::int64_t value) {
    if (row.least >= row.greatest || (value >= row.least && value <= row.greatest)) return {};
    return std::string(row.name) + " is " + std::to_string(value) + ": it must be " + std::to_string(row.least) +
           " to " + std::to_string(row.greatest);
}

std::string wrong_text(const DemandRow &row, const std::string &value) {
    const auto amounts = amounts_of(value);
    return amounts ? "" : std::string(row.name) + ": " + amounts.status().text;
}

}  // namespace

std::string out_of_range(const Demands &demands) {
    std::string wrong;
    each_demand(demands, [&wrong]<class T>(const DemandRow &row, const T &value) {
        if (!wrong.empty()) return;
        if constexpr (std::is_same_v<T, std::string>) wrong = wrong_text(row, value);
        else wrong = wrong_number(row, value);
    });
    return wrong;
}

Form form_needed(const Demands &demands) { return needed_for(demands).form; }

}  // namespace dcs::wire
