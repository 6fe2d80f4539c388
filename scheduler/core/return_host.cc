// A host that was silent comes back with grains that were taken from it.
#include <algorithm>

#include "base/planted.h"
#include "scheduler/core/decisions.h"
#include "scheduler/core/placement.h"

namespace dcs::core {
namespace {

// The older lease counts again. It has seen all that was committed, for the newer one has committed
// nothing; numbers go on above both.
void give_back_lease(Draft &d, const GrainKey &key, HostId id, Incarnation lease) {
    Grain &g = d.grain(key);
    DCS_REQUIRE(lease != 0 && lease <= g.incarnation && lease != g.lease,
                "another lease than the last one is taken back");
    Course &course = g.course.edit();
    const wire::Usage newer = course.current, before = course.before;
    const auto without = [](std::int64_t a, std::int64_t b) { return std::max<std::int64_t>(0, a - b); };
    wire::Usage past = course.past;
    past.user_us = without(past.user_us, before.user_us) + newer.user_us;
    past.system_us = without(past.system_us, before.system_us) + newer.system_us;
    course.past = past;
    if (course.kept.get() != Kept()) {
        Kept &kept = course.kept.edit();
        if (cpu_us(before) > 0) kept.saved = without(kept.saved, kept.held);  // it did not begin again after all
        std::swap(kept.start, kept.before);
    }
    course.current = before;
    course.before = wire::Usage();
    g.become(Running{});
    g.lessee = id;
    g.lease = lease;
    g.launched = true;
}

}  // namespace

bool reinstate(Draft &d, const GrainKey &key) {
    Grain &g = d.grain(key);
    DCS_REQUIRE(g.status() == GrainStatus::ready && g.lessee != no_host, "only a lease that was kept can be forgiven");
    g.become(Running{});
    d.event("grain " + to_text(key) + " continues on " + d.state.host(g.lessee)->config->name);
    return true;
}

bool take_back(Draft &d, const GrainKey &key, const wire::HeldGrain &held, HostId id) {
    const Grain &now = *d.state.grain(key);
    if (now.course->old_lease != OldLease{id, held.incarnation}) return false;
    // Meanwhile it broke a limit of another host, and this one permits no more.
    if (is_nogo(now, id) && !planted("core.returns_to_nogo")) {
        d.grain(key).course.edit().old_lease = OldLease{};
        return false;
    }
    const std::string name = d.state.host(id)->config->name;
    if (now.status() == GrainStatus::ready) {
        // The host of the newer lease is missing too: it may still come back with it.
        const OldLease newer = now.lessee == no_host ? OldLease{} : OldLease{now.lessee, now.lease};
        give_back_lease(d, key, id, held.incarnation);
        d.grain(key).course.edit().old_lease = newer;
        d.event("grain " + to_text(key) + " continues on " + name + ", under an older lease");
        return true;
    }
    if (now.status() != GrainStatus::running) return false;
    if (held.cpu_us <= cpu_us(now.course->current)) {
        d.grain(key).course.edit().old_lease = OldLease{};
        return false;
    }
    const HostId loser = now.runs_on();
    note_move(d, key, MoveReason::longer_copy, "the copy on " + name + " has run longer");
    d.withdraw(loser, key, now.lease, true, "an older copy of it has run longer");
    give_back_lease(d, key, id, held.incarnation);
    d.grain(key).course.edit().old_lease = OldLease{};
    d.follow_up(FillHost{loser});
    d.event("grain " + to_text(key) + " continues on " + name + ", which has run it for longer than " +
            d.state.host(loser)->config->name);
    return true;
}

}  // namespace dcs::core
