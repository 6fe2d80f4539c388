#pragma once
// A pool whose hosts have joined must not get another authority by mistake.
#include <string>

#include "base/status.h"
#include "store/store.h"

namespace dcs::shell {

// Before the authority is asked for, which makes it. refused: the directory `pki` is missing, although hosts joined the
// pool of the store in `state`; one that is there and empty is how an operator asks for a new authority. A process of
// its own, without this one's rights, reads the store.
Status authority_is_there(const std::string &pki, const std::string &state, const store::StoreOptions &options);

}  // namespace dcs::shell
