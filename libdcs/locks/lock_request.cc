#include "locks/lock_request.h"

namespace dcs::locks {

const char *denied_word(Denied denied) {
    switch (denied) {
    case Denied::no: return "granted";
    case Denied::busy: return "busy";
    case Denied::too_soon: return "too-soon";
    case Denied::not_permitted: return "not-permitted";
    case Denied::own_ancestor: return "own-ancestor";
    case Denied::unkillable: return "unkillable";
    case Denied::elsewhere: return "elsewhere";
    case Denied::giving_up: return "giving-up";
    case Denied::failed: return "failed";
    }
    return "failed";
}

}  // namespace dcs::locks
