#pragma once
// SHA-256 and random bytes, from OpenSSL.
#include <memory>
#include <string>
#include <string_view>

#include "base/ids.h"

namespace dcs::pki {
std::array<std::uint8_t, 32> sha256(std::string_view bytes);
Fingerprint fingerprint(std::string_view bytes);  // the first half of the SHA-256
// Incremental SHA-256.
class Sha256 {
public:
    Sha256();
    ~Sha256();
    Sha256(const Sha256 &) = delete;
    Sha256 &operator=(const Sha256 &) = delete;
    void add(std::string_view bytes);
    std::string finish();  // 32 bytes; call once, and add nothing afterwards

private:
    struct Context;
    std::unique_ptr<Context> context_;
};
std::string sha256_text(std::string_view bytes);  // 32 bytes as a string
Token random_token();                             // aborts if the kernel has no randomness
}  // namespace dcs::pki
