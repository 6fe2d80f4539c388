#include "pki/digest.h"

#include <algorithm>

#include <openssl/evp.h>
#include <openssl/rand.h>

#include "base/first_made.h"
#include "base/per_thread.h"
#include "base/require.h"

namespace dcs::pki {
namespace {
using DigestContext = std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)>;

// Looked up once: by EVP_sha256() libcrypto would search its providers for each digest, which costs more than 200
// bytes of it.
const EVP_MD *digest_sha256() {
    using Found = const EVP_MD *;
    static std::atomic<const Found *> found{nullptr};
    return first_made(found, []() -> Found {
        // Handlers of atexit() may submit: libcrypto must not have been cleaned up by then.
        ::OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, nullptr);
        return EVP_MD_fetch(nullptr, "SHA256", nullptr);
    });
}

DigestContext new_context() { return {EVP_MD_CTX_new(), &EVP_MD_CTX_free}; }

struct OwnContext {
    DigestContext evp = new_context();
};

void begin_digest(EVP_MD_CTX *context) {
    DCS_REQUIRE(context && EVP_DigestInit_ex2(context, digest_sha256(), nullptr) == 1, "libcrypto computes SHA-256");
}

void add_bytes(EVP_MD_CTX *context, std::string_view bytes) {
    DCS_REQUIRE(EVP_DigestUpdate(context, bytes.data(), bytes.size()) == 1, "libcrypto computes SHA-256");
}

std::array<std::uint8_t, 32> end_digest(EVP_MD_CTX *context) {
    std::array<std::uint8_t, 32> out{};
    unsigned length = 0;
    const int good = EVP_DigestFinal_ex(context, out.data(), &length);
    DCS_REQUIRE(good == 1 && length == out.size(), "libcrypto computes SHA-256");
    return out;
}

std::string text_of(const std::array<std::uint8_t, 32> &digest) { return {digest.begin(), digest.end()}; }
}  // namespace

std::array<std::uint8_t, 32> sha256(std::string_view bytes) {
    EVP_MD_CTX *context = PerThread<OwnContext>::mine().evp.get();
    begin_digest(context);
    add_bytes(context, bytes);
    return end_digest(context);
}
Fingerprint fingerprint(std::string_view bytes) {
    const auto whole = sha256(bytes);
    Fingerprint half{};
    std::copy_n(whole.begin(), half.size(), half.begin());
    return half;
}
struct Sha256::Context {
    DigestContext evp = new_context();
};
Sha256::Sha256() : context_(std::make_unique<Context>()) { begin_digest(context_->evp.get()); }
Sha256::~Sha256() = default;
void Sha256::add(std::string_view bytes) { add_bytes(context_->evp.get(), bytes); }
std::string Sha256::finish() { return text_of(end_digest(context_->evp.get())); }
std::string sha256_text(std::string_view bytes) { return text_of(sha256(bytes)); }
Token random_token() {
    Token token{};
    DCS_REQUIRE(RAND_bytes(token.data(), static_cast<int>(token.size())) == 1, "the kernel provides random bytes");
    return token;
}
}  // namespace dcs::pki
