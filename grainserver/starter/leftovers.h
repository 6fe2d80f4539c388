#pragma once
// What grains under a made-up uid leave on the host outside of their rooms: files in the places that all accounts may
// write, message queues, and System V segments, semaphores and queues, which take memory that no limit counts any more.
// It is removed when the last process of that uid is gone; what is meant to stay is in the user's DCS home.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "base/fd.h"
#include "base/tree_removal.h"

namespace dcs::starter {

class Leftovers {
public:
    // `scratch`: the places, with the sticky bit; others are left alone.
    explicit Leftovers(std::vector<std::string> scratch = {"/tmp", "/var/tmp", "/dev/shm", "/dev/mqueue", "/run/lock"})
        : scratch_(std::move(scratch)) {}
    enum class Left : std::uint8_t { nothing, more, in_use };  // in_use: the uid has processes
    // Removes a part of it, with the uid's own rights.
    Left go_on(uid_t uid);

private:
    struct Doomed {
        Fd place;
        std::vector<std::string> names;
    };
    bool remove_some();

    std::vector<std::string> scratch_;
    std::vector<Doomed> places_;  // of the uid that is worked on
    std::optional<TreeRemoval> tree_;
    std::optional<uid_t> now_on_;
};

}  // namespace dcs::starter
