#include "wire/demands.h"

#include <boost/archive/detail/interface_oarchive.hpp>

#include "wire/needed.h"

namespace dcs::wire {
namespace {

class RangeCheck : public boost::archive::detail::interface_oarchive<RangeCheck> {
public:
    std::string wrong;

    template <class T> void save_override(const FieldOf<T> &field) {
        if constexpr (FixedInteger<T>) {
            const auto value = std::int64_t{field.const_value()};
            if (!wrong.empty() || field.least >= field.greatest) return;
            if (value >= field.least && value <= field.greatest) return;
            wrong = std::string(field.name()) + " is " + std::to_string(value) + ": it must be " +
                    std::to_string(field.least) + " to " + std::to_string(field.greatest);
        }
    }
};

struct BoundsOf : boost::archive::detail::interface_oarchive<BoundsOf> {
    std::string_view wanted;
    Bounds bounds;

    template <class T> void save_override(const FieldOf<T> &field) {
        if (field.name() == wanted) bounds = {field.least, field.greatest};
    }
};

}  // namespace

Bounds bounds_of_demand(std::string_view field) {
    BoundsOf found;
    found.wanted = field;
    walk_fields(found, Demands{});
    return found.bounds;
}

std::string out_of_range(const Demands &demands) {
    RangeCheck check;
    walk_fields(check, demands);
    return check.wrong;
}

Form form_needed(const Demands &demands) { return needed_for(demands).form; }

}  // namespace dcs::wire
