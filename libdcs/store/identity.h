#pragma once
// Which store this is, in an update tree of its own, `identity/store` and the same again in `identity/copy`: a name
// drawn at random when it is made, and the epoch, which grows each time a copy of it is made the original. It travels
// to copies with everything else.
#include <cstdint>
#include <string>
#include <string_view>

#include "store/store.h"

namespace dcs::store {

struct Identity {
    std::uint64_t name = 0;  // 0: none yet
    std::uint64_t epoch = 1;
    bool whole = true;       // false: one of the two is damaged or missing; identity_update() makes both anew
};

inline constexpr const char *identity_directory = "identity";
const TreeTemplate &identity_tree();
TreeUpdate identity_update(const Identity &identity);
// Name 0 if the store has none yet; io_error if both are damaged.
Result<Identity> read_identity(Store &store);

}  // namespace dcs::store
