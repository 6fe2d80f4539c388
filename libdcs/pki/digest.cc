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
struct Sha256::Context {
    std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> evp{EVP_MD_CTX_new(), &EVP_MD_CTX_free};
};
Sha256::Sha256() : context_(std::make_unique<Context>()) {
    EVP_MD_CTX *evp = context_->evp.get();
    DCS_REQUIRE(evp && EVP_DigestInit_ex(evp, EVP_sha256(), nullptr) == 1, "libcrypto computes SHA-256");
}
Sha256::~Sha256() = default;
void Sha256::add(std::string_view bytes) {
    DCS_REQUIRE(EVP_DigestUpdate(context_->evp.get(), bytes.data(), bytes.size()) == 1, "libcrypto computes SHA-256");
}
std::string Sha256::finish() {
    std::string out(32, '\0');
    unsigned length = 0;
    const int good = EVP_DigestFinal_ex(context_->evp.get(), reinterpret_cast<unsigned char *>(out.data()), &length);
    DCS_REQUIRE(good == 1 && length == out.size(), "libcrypto computes SHA-256");
    return out;
}
std::string sha256_text(std::string_view bytes) {
    const auto whole = sha256(bytes);
    return std::string(whole.begin(), whole.end());
}
Token random_token() {
    Token token{};
    DCS_REQUIRE(RAND_bytes(token.data(), static_cast<int>(token.size())) == 1, "the kernel provides random bytes");
    return token;
}
}  // namespace dcs::pki
