#pragma once
// When the launcher looks at grains with limits.
#include <algorithm>

#include "base/instant.h"
#include "base/planted.h"

namespace dcs::launcher {

inline constexpr Duration look_often = milliseconds(250);
// The looks at one grain take at most one part in this number of the time. Each waits for itself: one that is made to
// take long must not keep the others from theirs.
inline constexpr int look_share = 50;

// Looks at those that are due, and returns when the next is. `shared`: what was spent for all of them before.
template <class Grains, class Clock, class Look>
Instant look_at_due(Grains &grains, Instant now, Duration shared, Clock clock, Look look) {
    Instant next = Instant::never();
    for (auto &[dir, grain] : grains) {
        if (grain.watched() && grain.next_watch <= now) {
            const Instant before = clock();
            look(dir, grain);
            const Instant after = clock();
            grain.next_watch = after + std::max(look_often, (shared + (after - before)) * look_share);
        }
        if (grain.watched()) next = std::min(next, grain.next_watch);
    }
    if (planted("launcher.one_pace"))
        for (auto &[dir, grain] : grains) next = grain.next_watch = std::max(next, grain.next_watch);
    return next;
}

}  // namespace dcs::launcher
