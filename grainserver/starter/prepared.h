#pragma once
// What starts have in common: read or made once, and again when it has changed.
#include <ctime>
#include <map>
#include <memory>

#include <sys/types.h>

#include "base/status.h"
#include "grainserver/files/confine.h"
#include "grainserver/files/owner_rules.h"

namespace dcs::starter {

class Prepared {
public:
    // The rules of the host's owner as the file in the server's directory `base` has them now. A server that is
    // restarted with other options replaces the file.
    Result<const files::OwnerRules *> rules(int base);
    // Lives at least until the next call. A confinement to files names the grain's own room and is made for each grain.
    Result<const files::Confinement *> confinement(const files::ConfinementWish &wish);

private:
    struct Seen {
        dev_t device = 0;
        ino_t inode = 0;
        off_t size = -1;
        std::int64_t modified_ns = 0, changed_ns = 0;
        bool operator==(const Seen &) const = default;
    };
    Seen seen_;
    files::OwnerRules rules_;
    std::map<Rungs, files::Confinement> confinements_;
    files::Confinement last_;
};

}  // namespace dcs::starter
