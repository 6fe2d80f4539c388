// The list of demands, and the structs of the installed headers that are written by hand.
#include <type_traits>

#include "dcs.hpp"
#include "support/catch.h"
#include "wire/demands.h"

using dcs::wire::DemandRow;
using dcs::wire::Demands;
using dcs::wire::each_demand;

namespace {

// Of each a value that is not its default, and not that of the others.
template <class X> X unlike_defaults() {
    X x;
    int last = 1;
    each_demand(x, [&last]<class T>(const DemandRow &, T &value) {
        if constexpr (std::is_same_v<T, bool>) value = !value;
        else if constexpr (std::is_same_v<T, std::string>) value = "r=" + std::to_string(++last);
        else value = static_cast<T>(value + ++last);
    });
    return x;
}

}  // namespace

TEST_CASE("a grain of dcs.hpp has the demands of the list, with their defaults, and hands them to C") {
    CHECK(dcs::wire::demands_in(dcs::grain{}) == Demands{});
    const auto grain = unlike_defaults<dcs::grain>();
    const dcs::detail::c_grain one(grain);
    CHECK(dcs::wire::demands_in(one.c) == unlike_defaults<Demands>());
}

TEST_CASE("d_grain_init gives the defaults of the list, and a row of C has every demand") {
    d_grain grain;
    d_grain_init(&grain);
    CHECK(dcs::wire::demands_in(grain) == Demands{});
    d_grain_row row{};
    const auto demands = unlike_defaults<Demands>();
    dcs::wire::put_demands(demands, row);
    CHECK(dcs::wire::demands_in(row) == unlike_defaults<Demands>());
}
