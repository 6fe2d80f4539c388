#pragma once
// Inside of net/tls.h, for tls_context.cc and tls_session.cc only: the one header that shows OpenSSL's TLS.
#include <optional>

#include <openssl/ssl.h>

#include "net/tls.h"
#include "pki/openssl_types.h"

namespace dcs::net {

class TlsContext {
public:
    std::unique_ptr<SSL_CTX, pki::Release<SSL_CTX_free>> ssl;
    std::optional<pki::Certificate> authority;
    std::optional<TokenHash> authority_hash;
    pki::Role role = pki::Role::none;
    std::vector<pki::Role> also;
};

// What the check of a peer's certificate leaves behind; SSL_set_app_data() of its SSL.
struct TlsChecked {
    const TlsContext *context = nullptr;
    pki::Verification verdict;
    TlsPeer peer;
    TlsPeer claimed;  // role and name as the certificate has them, before it was verified
};

}  // namespace dcs::net
