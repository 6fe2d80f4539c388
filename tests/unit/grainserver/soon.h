#pragma once
// Waiting for what other processes do; the limit only ends a hung test.
#include <ctime>

namespace bench {

inline void nap(int ms) {
    const timespec t{ms / 1000, ms % 1000 * 1'000'000L};
    ::nanosleep(&t, nullptr);
}
template <class F> bool soon(F condition, int ms = 200'000) {
    for (int waited = 0; waited < ms; waited += 10) {
        if (condition()) return true;
        nap(10);
    }
    return condition();
}

}  // namespace bench
