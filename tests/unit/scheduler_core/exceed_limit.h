#pragma once
// Grain 0 of session 1 meets the limit of the server of h1, and waits for h2, which permits more but is busy.
#include "pool.h"

namespace dcs::core {

// It runs on h1, the only host.
inline void exceed_limit(Pool &pool, const Program &user) {
    pool.limits("h1", {64});
    pool.add_host("h2");
    pool.table();
    pool.first_call("h2");
    pool.limits("h2", {128});
    pool.gexec(user, 1, 99);
    wire::GrainReport r = pool.end_report("ann/1:0", 0, 9);
    r.limit = r.limit_of_host = true;
    r.reason = "the grain used more than its 64 MB memory";
    pool.send("h1", r);
}

}  // namespace dcs::core
