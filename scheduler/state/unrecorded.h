#pragma once
// Grains that have ended, and whose reports their hosts repeat because there is no room for them. No turn takes that
// back, so nothing of it is undone.
#include <map>

#include "scheduler/state/grain.h"

namespace dcs::core {

enum class NoRoom : std::uint8_t { of_user, of_all };  // the user's share is used up, or the disk is full

struct State;
class Unrecorded {
public:
    void note(const State &state, const GrainKey &key, Incarnation lease, NoRoom why);
    // Nothing if it is none of them (any more).
    std::optional<NoRoom> of(const State &state, const GrainKey &key) const;
    std::map<std::string, std::map<NoRoom, int>> counts(const State &state) const;  // by user

private:
    struct Ended {
        Incarnation lease = 0;
        NoRoom why = NoRoom::of_user;
    };
    std::map<GrainKey, Ended> ended_;  // and some that are none any more
};

}  // namespace dcs::core
