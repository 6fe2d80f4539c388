#include "wire/demands.h"

#include "wire/needed.h"

namespace dcs::wire {

std::string out_of_range(const Demands &demands) {
    std::string wrong;
    each_demand(demands, [&wrong](const DemandRow &row, std::int64_t value) {
        if (!wrong.empty() || row.least >= row.greatest || (value >= row.least && value <= row.greatest)) return;
        wrong = std::string(row.name) + " is " + std::to_string(value) + ": it must be " + std::to_string(row.least) +
                " to " + std::to_string(row.greatest);
    });
    return wrong;
}

Form form_needed(const Demands &demands) { return needed_for(demands).form; }

}  // namespace dcs::wire
