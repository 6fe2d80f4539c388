#pragma once
// When that is removed which grains under an anonymous uid leave on the host (starter/leftovers.h).
#include <functional>
#include <map>
#include <set>

#include <sys/types.h>

#include "base/instant.h"
#include "grainserver/starter/leftovers.h"

namespace dcs::launcher {

class Leftovers {
public:
    // `remove`: a part of what the uid has left.
    explicit Leftovers(std::function<starter::Leftovers::Left(uid_t)> remove) : remove_(std::move(remove)) {}
    // A grain under it has ended.
    void note(uid_t uid, Instant now) { ended_[uid] = now + rest; }
    // One part. Uids of `running` grains wait.
    void clear(const std::set<uid_t> &running, Instant now);
    Instant next() const;  // when clear() has work; never() if nothing is noted

private:
    static constexpr Duration rest = seconds(1);  // a user's next grain often follows at once
    std::function<starter::Leftovers::Left(uid_t)> remove_;
    std::map<uid_t, Instant> ended_;
};

}  // namespace dcs::launcher
