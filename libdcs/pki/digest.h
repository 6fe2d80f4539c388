#pragma once
// SHA-256 and random bytes, from OpenSSL.
#include <string_view>

#include "base/ids.h"

namespace dcs::pki {
std::array<std::uint8_t, 32> sha256(std::string_view bytes);
Fingerprint fingerprint(std::string_view bytes);  // first half of it
Token random_token();                             // aborts if the kernel has no randomness
}  // namespace dcs::pki
