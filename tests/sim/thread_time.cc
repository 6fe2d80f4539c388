#include "sim/thread_time.h"

#include <ctime>

namespace dcs::sim {

Duration thread_time() {
    timespec t{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return seconds(t.tv_sec) + Duration{t.tv_nsec};
}

}  // namespace dcs::sim
