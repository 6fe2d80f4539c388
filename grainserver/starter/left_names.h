#pragma once
// The names that uids whose grains have ended left in places that all accounts may write: at the top, and below
// directories of other made-up uids, where one uid's directory keeps another's from being removed. Each name goes with
// the rights of its owner, or of the owner of the directory around it: whatever is moved or linked meanwhile, a uid
// loses nothing but by its own rights. Symbolic links are not followed, and mounts not entered.
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <sys/types.h>

#include "base/fd.h"

namespace dcs::starter {

class LeftNames {
public:
    // `places`: with the sticky bit; others are left alone. `ended` may change between steps. Directories of uids with
    // a login are left alone, unless these are among the ended.
    LeftNames(const std::vector<std::string> &places, const std::set<uid_t> &ended,
              std::function<bool(uid_t)> has_login);
    // Looks at this many names more. True: it has looked at all. What resists stays.
    bool go_on(int names);

private:
    struct Seen {
        uid_t owner;
        mode_t mode;
        dev_t device;
        ino_t inode;
    };
    struct Place {
        Fd fd;
        std::vector<std::string> names;
    };
    struct Level {
        std::string name;  // in the level above
        Seen seen;
        std::vector<std::string> left;
    };
    static std::optional<Seen> look(int directory, const std::string &name);
    bool has_ended(uid_t uid) const { return ended_.count(uid) != 0; }
    bool may_enter(uid_t owner);
    // Of the directory that is worked on; nothing: it is a place.
    std::optional<uid_t> owner() const;
    int here() const { return levels_.empty() ? places_.back().fd.get() : here_.get(); }
    bool remove(const std::string &name, const Seen &seen) const;
    void take(const std::string &name);
    void enter(const std::string &name, const Seen &seen);
    void leave();

    const std::set<uid_t> &ended_;
    std::function<bool(uid_t)> has_login_;
    std::map<uid_t, bool> enters_;
    std::vector<Place> places_;
    std::vector<Level> levels_;
    Fd here_;  // what the last level is: one descriptor, however deep that is
};

}  // namespace dcs::starter
