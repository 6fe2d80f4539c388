#pragma once
// What starts of grains have in common.
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

#include <sys/types.h>

#include "base/status.h"
#include "grainserver/files/confine.h"
#include "grainserver/files/owner_rules.h"
#include "grainserver/starter/become_grain.h"

namespace dcs::starter {

// Read or made once, and again when it has changed.
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

// The filter of system calls that grains inherit from the starter. The kernel compiles a filter for each process that
// puts one on, which takes as long as all other steps of a start; so the starter has that of its first grain on.
class Filter {
public:
    Filter();
    ~Filter();
    // Whether the grain inherits its filter from this thread, which puts on the first one of all.
    bool is_inherited(const Plan &plan);
    // Does what a filter may deny, in a thread that has none, and returns when it is done.
    void without(const std::function<void()> &work);
    // The same for what may use the network.
    void with_network(const std::function<void()> &work);

private:
    class Unfiltered;
    std::unique_ptr<Unfiltered> unfiltered_;  // there is none: this thread has no filter
    bool tried_ = false;
    Rungs kind_ = 0;
};

// A limit on the time from the fork of a grain to its exec, while which the starter is suspended. What belongs to the
// grain's account can hold it up: a lease on the program, a file system that does not answer.
inline constexpr int exec_seconds = 10;  // in which the child is blocked all the time; waiting for a processor is not

class ExecLimit {
public:
    ExecLimit();
    ~ExecLimit();
    ExecLimit(const ExecLimit &) = delete;
    ExecLimit &operator=(const ExecLimit &) = delete;

    // Before the fork; the child writes to what this returns. Null: the system has no memory for it.
    Told *begin();
    // After it. True: the child was ended by SIGKILL, because it was blocked for too long.
    bool end();

private:
    void watch();
    bool look();  // whether a start is in progress

    Told *told_ = nullptr;
    std::mutex mutex_;
    std::condition_variable wake_;
    bool starting_ = false, killed_ = false, idle_ = true, leave_ = false;
    int blocked_ = 0;  // how many looks in succession
    std::thread thread_;
};

}  // namespace dcs::starter
