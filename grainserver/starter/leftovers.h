#pragma once
// What grains under a made-up uid leave on the host outside of their rooms: files in the places that all accounts may
// write, message queues, and System V segments, semaphores and queues, which take memory that no limit counts any more.
// It is removed when the last process of that uid is gone; what is meant to stay is in the user's DCS home.
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <sys/types.h>

#include "grainserver/starter/left_names.h"

namespace dcs::starter {

class Leftovers {
public:
    // `scratch`: the places, with the sticky bit; others are left alone.
    explicit Leftovers(std::vector<std::string> scratch = {"/tmp", "/var/tmp", "/dev/shm", "/dev/mqueue", "/run/lock"})
        : scratch_(std::move(scratch)) {}
    enum class Left : std::uint8_t { nothing, more, in_use };  // in_use: the uid has processes
    // Removes a part of it, also below directories of other made-up uids; and what was in the way of uids before.
    Left go_on(uid_t uid);

    // It is not among those that have ended: a grain starts under it.
    void runs_again(uid_t uid) { ended_.erase(uid); }

private:
    std::vector<std::string> scratch_;
    std::set<uid_t> ended_;  // that were worked on and have no processes: what was in their way may go any time
    std::optional<LeftNames> names_;
    std::optional<uid_t> now_on_;
};

}  // namespace dcs::starter
