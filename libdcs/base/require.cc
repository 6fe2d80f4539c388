#include "base/require.h"

#include <cstdio>
#include <cstdlib>

namespace dcs {
void require_failed(const char *file, int line, const char *condition, const char *why) noexcept {
    std::fprintf(stderr, "%s:%d: DCS_REQUIRE(%s) failed: %s\n", file, line, condition, why);
    std::abort();
}
}  // namespace dcs
