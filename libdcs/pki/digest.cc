#include "pki/digest.h"

#include <algorithm>

#include <openssl/evp.h>
#include <openssl/rand.h>

#include "base/require.h"

namespace dcs::pki {
std::array<std::uint8_t, 32> sha256(std::string_view bytes) {
    std::array<std::uint8_t, 32> out{};
    unsigned length = 0;
    const int good = EVP_Digest(bytes.data(), bytes.size(), out.data(), &length, EVP_sha256(), nullptr);
    DCS_REQUIRE(good == 1 && length == out.size(), "libcrypto computes SHA-256");
    return out;
}
Fingerprint fingerprint(std::string_view bytes) {
    const auto whole = sha256(bytes);
    Fingerprint half{};
    std::copy_n(whole.begin(), half.size(), half.begin());
    return half;
}
Token random_token() {
    Token token{};
    DCS_REQUIRE(RAND_bytes(token.data(), static_cast<int>(token.size())) == 1, "the kernel has randomness");
    return token;
}
}  // namespace dcs::pki
