// What planted() answers in test programs: yes for the bugs that DCS_PLANTED names, separated by commas.
#include "base/planted.h"

#include <cstdlib>
#include <cstring>

namespace dcs {

bool planted(const char *name) noexcept {
    static const char *const list = std::getenv("DCS_PLANTED");
    if (list == nullptr) return false;
    const std::size_t length = std::strlen(name);
    for (const char *at = list; (at = std::strstr(at, name)) != nullptr; at += length)
        if ((at == list || at[-1] == ',') && (at[length] == ',' || at[length] == '\0')) return true;
    return false;
}

}  // namespace dcs
