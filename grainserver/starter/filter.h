#pragma once
// The filter of system calls that grains inherit from the starter. The kernel compiles a filter for each process that
// puts one on, which takes as long as all other steps of a start; so the starter has that of its first grain on.
#include <functional>
#include <memory>

#include "grainserver/starter/become_grain.h"

namespace dcs::starter {

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

}  // namespace dcs::starter
