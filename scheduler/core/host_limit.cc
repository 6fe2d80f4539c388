// A grain that broke a limit of one host's server, where other hosts permit more.
#include <algorithm>

#include "base/planted.h"
#include "scheduler/core/placement.h"

namespace dcs::core {
namespace {

// Of reports: SIGKILL, SIGXCPU and SIGXFSZ.
constexpr int used_too_much = 9, ran_too_long = 24, wrote_too_much = 25;
constexpr std::int64_t without_end = INT64_MAX;
std::int64_t amount(std::int64_t limit) { return limit > 0 ? limit : without_end; }

// Of what that signal tells of; the report does not say which of the two it was.
struct Pair {
    std::int64_t a = without_end, b = without_end;
    bool permits_more_than(const Pair &other) const {
        return a >= other.a && b >= other.b && (a > other.a || b > other.b);
    }
};
Pair limits_of(const Host &host, const Grain &grain, int signal) {
    const wire::GrainLimits &most = host.limits;
    switch (signal) {
    case used_too_much:
        return {std::min(amount(most.memory_mb), amount(grain.demands->memory_mb)), amount(most.processes)};
    case ran_too_long: return {amount(most.cpu_s), without_end};
    case wrote_too_much: return {amount(most.file_mb), amount(most.disk_mb)};
    default: return {};
    }
}

}  // namespace

bool try_higher_limit(Draft &d, const GrainKey &key, HostId id, const wire::GrainReport &report) {
    if (!report.limit_of_host) return false;
    const Grain &old = *d.state.grain(key);
    const Pair here = limits_of(*d.state.host(id), old, report.signal);
    std::vector<HostId> no_better;
    bool any = false;
    for (std::size_t i = 0; i < d.state.hosts.size(); ++i) {
        const auto other = static_cast<HostId>(i);
        const Host &host = d.state.hosts[i];
        if (!host.found_known || !could_run(d.state, other, key.session, old)) continue;  // not known, or of no use
        const bool better = limits_of(host, old, report.signal).permits_more_than(here);
        any = any || better;
        if (!better) no_better.push_back(other);
    }
    if (!any || planted("core.first_limit_is_last")) return false;
    std::vector<HostId> &nogo = d.grain(key).course.edit().nogo.edit();
    for (const HostId other : no_better)
        if (nogo.size() < limits::nogo_items) nogo.push_back(other);
    note_move(d, key, MoveReason::host_limit, report.reason);
    requeue_front(d, key, false);
    d.follow_up(PlaceGrain{key});
    d.follow_up(FillHost{id});
    d.event("grain " + to_text(key) + " broke a limit of " + d.state.host(id)->config->name +
            " and is tried where more is permitted: " + report.reason);
    return true;
}

}  // namespace dcs::core
