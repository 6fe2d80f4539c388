#include "daemon/directory.h"

#include <unistd.h>

#include "base/clock.h"
#include "base/files.h"
#include "base/trusted_path.h"

namespace dcs {
namespace {

Result<locks::AdaptiveLock> lock(locks::DcsAtom atom, const std::string &path, const std::string &who) {
    auto taken = locks::take_dcs_atom(atom, path);
    if (taken) return taken;
    const bool held = taken.status().code == Code::refused && ::access(path.c_str(), W_OK) == 0;
    const std::string what =
        held ? "another " + who + " uses this directory: " : "the " + who + "'s lock cannot be taken: ";
    return fail(taken.status().code, what + taken.status().text);
}

}  // namespace

Result<OwnDirectory> take_own_directory(const std::string &directory, locks::DcsAtom daemon, locks::DcsAtom store,
                                        const std::string &who) {
    OwnDirectory own{.state = directory + "/state"};
    if (Status s = trusted_path(directory); !s) return s;  // before anything is made there
    if (Status s = make_directory(directory); !s) return s;
    if (Status s = make_directory(own.state); !s) return s;
    if (Status s = trusted_path(own.state); !s) return s;
    auto of_daemon = lock(daemon, directory + "/lock", who);
    if (!of_daemon) return of_daemon.status();
    auto of_store = lock(store, own.state + "/lock", who);
    if (!of_store) return of_store.status();
    own.daemon = std::move(*of_daemon);
    own.store = std::move(*of_store);
    return own;
}

bool RemovalWatch::removed() {
    if (boot_clock() < next_) return false;
    next_ = boot_clock() + seconds(5);
    return locks::was_removed(lock_);
}

}  // namespace dcs
