#pragma once
// DCS_REQUIRE: a check that stays on in production. A false condition is a bug of ours, never of a
// user, a peer or a disk: it prints where and what, and aborts. Recovery is the ordinary start.

namespace dcs {
[[noreturn]] void require_failed(const char *file, int line, const char *condition, const char *why) noexcept;
}

#define DCS_REQUIRE(condition, why)                                                   \
    do {                                                                              \
        if (!(condition)) ::dcs::require_failed(__FILE__, __LINE__, #condition, why); \
    } while (false)
