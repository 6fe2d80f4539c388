// A grain in a locale of its own, with states of all kinds of numbers: it takes a checkpoint and is lost; the next run
// prints what it has read.
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <locale>

#include "grainlib.hpp"

struct Comma : std::numpunct<char> {
    char do_decimal_point() const override { return ','; }
    char do_thousands_sep() const override { return '.'; }
    std::string do_grouping() const override { return "\3"; }
};

int main() {
    std::locale::global(std::locale(std::locale(), new Comma));
    dcs_grain::handler();
    long n;
    long double x;
    double y;
    if (!(std::cin >> n >> x >> y)) return 2;
    if (n == 0) {
        n = 1234567, x = 1 / 3.0L, y = 0.1;
        dcs_grain::checkpoint("once", [&](std::ostream &state) { state << n << ' ' << x << ' ' << y + 1e9 << '\n'; });
        std::abort();
    }
    std::printf("%ld %La %a\n", n, x, y);
}
