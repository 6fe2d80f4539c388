#include "up_lock.h"

namespace dcs::commands {

Result<locks::AdaptiveLock> take_work_lock(const Pool &pool) {
    constexpr std::int64_t patience = 120'000'000'000;  // longer than the other one can take
    return locks::take_dcs_atom(locks::DcsAtom::pool_work, pool.path("up.lock"), patience);
}

}  // namespace dcs::commands
