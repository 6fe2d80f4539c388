// What planted() answers in test programs that link this: yes for the bug that the variable DCS_PLANT names.
#include "base/planted.h"

#include <cstdlib>
#include <cstring>

namespace dcs {
bool planted(const char *name) noexcept {
    const char *active = std::getenv("DCS_PLANT");
    return active != nullptr && std::strcmp(active, name) == 0;
}
}  // namespace dcs
