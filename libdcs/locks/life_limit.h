#pragma once
// The limit of a run: at the soft one a tree that did nothing in the last third of its life is ended; one that
// used processors or did input and output goes on, and is looked at again, up to the hard one.
#include <cstdint>

#include "locks/record.h"
#include "locks/run_tree.h"

namespace dcs::locks {

struct Usage {
    std::int64_t cpu = 0;  // nanoseconds, of all processors
    std::int64_t io = 0;   // bytes read and written, pipes and sockets included
    bool wants = false;    // some process could run right now; on a busy host it may get no processor for long
};
// Of what runs of the tree, and of what the caller has waited for.
Usage usage_of(RunTree &tree);

class LifeLimit {
public:
    LifeLimit(std::int64_t soft, std::int64_t hard);
    // Age at which to look next; no_limit: never.
    std::int64_t next() const { return next_; }
    // A look at that age. True: it has lived long enough.
    bool over(std::int64_t age, const Usage &usage);
    bool progressing() const { return progressing_; }

private:
    std::int64_t soft_, hard_, next_, last_age_ = 0;
    Usage last_;
    bool progressing_ = false;
};

}  // namespace dcs::locks
