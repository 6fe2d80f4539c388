#include "scheduler/state/unrecorded.h"

#include "scheduler/state/state.h"

namespace dcs::core {
namespace {

constexpr std::size_t most_unrecorded = 4096;  // more are not named

}  // namespace

void Unrecorded::note(const State &state, const GrainKey &key, Incarnation lease, NoRoom why) {
    if (ended_.size() >= most_unrecorded)
        std::erase_if(ended_, [&](const auto &entry) { return !of(state, entry.first); });
    if (ended_.size() < most_unrecorded || ended_.count(key) != 0) ended_[key] = {lease, why};
}

std::optional<NoRoom> Unrecorded::of(const State &state, const GrainKey &key) const {
    const auto found = ended_.find(key);
    const Grain *grain = found == ended_.end() ? nullptr : state.grain(key);
    const bool counts = grain && grain->status() == GrainStatus::running && grain->lease == found->second.lease;
    return counts ? std::optional<NoRoom>(found->second.why) : std::nullopt;
}

std::map<std::string, std::map<NoRoom, int>> Unrecorded::counts(const State &state) const {
    std::map<std::string, std::map<NoRoom, int>> counts;
    for (const auto &[key, ended] : ended_)
        if (const auto why = of(state, key)) ++counts[key.session.user][*why];
    return counts;
}

}  // namespace dcs::core
