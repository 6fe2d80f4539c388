#pragma once
// What grains under made-up uids leave on the host when their last process has ended, and its removal.
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <sys/types.h>

#include "base/fd.h"
#include "base/instant.h"

namespace dcs::starter {

// The names that uids whose grains have ended left in places that all accounts may write: at the top, and below
// directories of other made-up uids, where one uid's directory keeps another's from being removed. Each name goes with
// the rights of its owner, or of the owner of the directory around it: whatever is moved or linked meanwhile, a uid
// loses nothing but by its own rights. Symbolic links are not followed, and mounts not entered.
class LeftNames {
public:
    // `places`: with the sticky bit; others are left alone. `ended` may change between steps. Directories of uids with
    // a login are left alone, unless these are among the ended.
    LeftNames(const std::vector<std::string> &places, const std::set<uid_t> &ended,
              std::function<bool(uid_t)> has_login);
    // Looks at this many names more. True: it has looked at all, or at names_max. What resists stays.
    bool go_on(int names);
    static constexpr int names_max = 10'000'000;  // others make them, perhaps without end

private:
    struct Seen {
        uid_t owner;
        mode_t mode;
        dev_t device;
        ino_t inode;
    };
    struct Names {  // of a directory, a part at a time
        std::vector<std::string> left;
        std::int64_t next = 0;  // where the next part begins
        bool all = false;       // there is none
        bool parts = false;     // there was more than one
        bool removed = false;   // some were
    };
    struct Place {
        Fd fd;
        Names names;
    };
    struct Level {
        std::string name;  // in the level above
        Seen seen;
        Names names;
    };
    static std::optional<Seen> look(int directory, const std::string &name);
    bool has_ended(uid_t uid) const { return ended_.count(uid) != 0; }
    bool may_enter(uid_t owner);
    // Of the directory that is worked on; nothing: it is a place.
    std::optional<uid_t> owner() const;
    int here() const { return levels_.empty() ? places_.back().fd.get() : here_.get(); }
    Names &names() { return levels_.empty() ? places_.back().names : levels_.back().names; }
    bool read_more();  // false: all was read
    bool remove(const std::string &name, const Seen &seen);
    void take(const std::string &name);
    void enter(const std::string &name, const Seen &seen);
    void leave();

    const std::set<uid_t> &ended_;
    std::function<bool(uid_t)> has_login_;
    std::map<uid_t, bool> enters_;
    std::vector<Place> places_;
    std::vector<Level> levels_;
    Fd here_;  // what the last level is: one descriptor, however deep that is
    int looked_at_ = 0;
};

// What grains under a made-up uid leave on the host outside of their rooms: files in the places that all accounts may
// write, message queues, and System V segments, semaphores and queues, which take memory that no limit counts any more.
// It is removed when the last process of that uid is gone; what is meant to stay is in the user's DCS home.
class Leftovers {
public:
    // `scratch`: the places, with the sticky bit; others are left alone. `at_once`: how long a part takes, in which no
    // grain of this host starts.
    explicit Leftovers(std::vector<std::string> scratch = {"/tmp", "/var/tmp", "/dev/shm", "/dev/mqueue", "/run/lock"},
                       Duration at_once = milliseconds(10))
        : scratch_(std::move(scratch)), at_once_(at_once) {}
    enum class Left : std::uint8_t { nothing, more, in_use };  // in_use: the uid has processes
    // Removes a part of it, also below directories of other made-up uids; and what was in the way of uids before.
    Left go_on(uid_t uid);

    // It is not among those that have ended: a grain starts under it.
    void runs_again(uid_t uid) { ended_.erase(uid); }

private:
    std::vector<std::string> scratch_;
    Duration at_once_;
    std::set<uid_t> ended_;  // that were worked on and have no processes: what was in their way may go any time
    std::optional<LeftNames> names_;
    std::optional<uid_t> now_on_;
};

}  // namespace dcs::starter
