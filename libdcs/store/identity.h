#pragma once
// The identity of a store, in an update tree of its own, `identity/store` with a copy in `identity/copy`: a random name
// from its creation, and the epoch, which is incremented each time a copy is promoted to the original. Copies of the
// store contain it.
#include <cstdint>

#include "store/store.h"

namespace dcs::store {

struct Identity {
    std::uint64_t name = 0;  // 0: none yet
    std::uint64_t epoch = 1;
    bool whole = true;  // false: one of the two is damaged or missing; identity_update() rewrites both
};

inline constexpr const char *identity_directory = "identity";
const TreeTemplate &identity_tree();
TreeUpdate identity_update(const Identity &identity);
// Name 0 if the store has none yet; io_error if both are damaged.
Result<Identity> read_identity(Store &store);

}  // namespace dcs::store
