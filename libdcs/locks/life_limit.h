#pragma once
// The limit of a run: a tree without progress in the last third of its life is ended at the soft limit. A tree that
// used CPU or did I/O continues and is checked again, up to the hard limit.
#include <cstdint>

#include "locks/files/record.h"
#include "locks/run_tree.h"

namespace dcs::locks {

struct Usage {
    std::int64_t cpu = 0;  // nanoseconds, of all processors
    std::int64_t io = 0;   // bytes read and written, pipes and sockets included
    bool wants = false;    // a process is runnable; on a busy host it may wait long for a processor
};
// Of the tree's running processes, and of the children that the caller has waited for.
Usage usage_of(RunTree &tree);

class LifeLimit {
public:
    LifeLimit(std::int64_t soft, std::int64_t hard);
    // Age of the next check; no_limit: never.
    std::int64_t next() const { return next_; }
    // The check at that age. True: the run is to be ended.
    bool over(std::int64_t age, const Usage &usage);
    bool progressing() const { return progressing_; }

private:
    std::int64_t soft_, hard_, next_, last_age_ = 0;
    Usage last_;
    bool progressing_ = false;
};

}  // namespace dcs::locks
