#pragma once
// Removes a directory with all that is in it, in steps, however deep and wide its owner made it. Symbolic links are
// removed, not followed, and nothing outside is touched, even while the owner moves parts of it: that ends in an error.
#include <string>
#include <vector>

#include <sys/types.h>

#include "base/fd.h"
#include "base/status.h"

namespace dcs {

class TreeRemoval {
public:
    // `parent` stays open until the end; AT_FDCWD: `name` is a path of our own.
    TreeRemoval(int parent, std::string name) : parent_(parent), name_(std::move(name)) {}
    // Looks at this many names more. True: nothing is left. After an error a new TreeRemoval may go on.
    Result<bool> go_on(int names);
    // The directory has got another name in `parent` since.
    void renamed(std::string name) { name_ = std::move(name); }

private:
    struct Level {
        std::string name;  // in the level above
        dev_t device;
        ino_t inode;
        std::vector<std::string> left;
    };
    Result<bool> take(int directory, const std::string &name);
    Result<bool> leave();

    int parent_;
    std::string name_;
    Fd here_;  // what the last level is: one descriptor, however deep that is
    std::vector<Level> levels_;
};

}  // namespace dcs
