#pragma once
// What grains under a made-up uid leave on the host outside of their rooms: files in the places that all accounts may
// write, message queues, and System V segments, semaphores and queues, which take memory that no limit counts any more.
// It is removed when the last process of that uid is gone; what is meant to stay is in the user's DCS home.
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <sys/types.h>

#include "base/fd.h"
#include "base/instant.h"
#include "base/tree_removal.h"

namespace dcs::launcher {

class Leftovers {
public:
    // `scratch`: the places, with the sticky bit; others are left alone.
    explicit Leftovers(std::vector<std::string> scratch = {"/tmp", "/var/tmp", "/dev/shm", "/dev/mqueue", "/run/lock"})
        : scratch_(std::move(scratch)) {}
    // A grain under it has ended.
    void note(uid_t uid, gid_t gid, Instant now) { ended_[uid] = {gid, now + rest}; }
    // One slice, with the uid's own rights. Uids of `running` grains wait.
    void clear(const std::set<uid_t> &running, Instant now);
    Instant next() const;  // when clear() has work; never() if nothing is noted

private:
    static constexpr Duration rest = seconds(1);  // a user's next grain often follows at once
    struct Ended {
        gid_t gid;
        Instant not_before;
    };
    bool go_on(uid_t uid, gid_t gid);

    std::vector<std::string> scratch_;
    std::map<uid_t, Ended> ended_;
    struct Doomed {
        Fd place;
        std::vector<std::string> names;
    };
    std::vector<Doomed> places_;  // of the uid that is worked on
    std::optional<TreeRemoval> tree_;
    std::optional<uid_t> now_on_;
};

}  // namespace dcs::launcher
