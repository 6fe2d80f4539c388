#include "net/tls_context.h"

#include <algorithm>

#include "base/clock.h"
#include "base/limits.h"
#include "net/tls_words.h"

namespace dcs::net {
namespace {

std::string der_of(const X509 *x) { return x != nullptr ? pki::to_der(x, i2d_X509) : std::string(); }

// The pinned authority among what the peer showed.
std::optional<pki::Certificate> shown_authority(X509_STORE_CTX *store, const TokenHash &hash) {
    const STACK_OF(X509) *chain = X509_STORE_CTX_get0_untrusted(store);
    for (int i = 0; i < sk_X509_num(chain); ++i) {
        const std::string der = der_of(sk_X509_value(chain, i));
        if (pki::sha256(der) != hash) continue;
        if (auto read = pki::read_certificate(der)) return std::move(*read);
    }
    return std::nullopt;
}

// Alerts are all that the peer learns while the handshake goes on.
int alert_of(pki::Check check) {
    switch (check) {
    case pki::Check::passed: return X509_V_OK;
    case pki::Check::expired: return X509_V_ERR_CERT_HAS_EXPIRED;
    case pki::Check::unknown_authority: return X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY;
    case pki::Check::wrong_role: return X509_V_ERR_INVALID_PURPOSE;
    case pki::Check::not_yet_valid:
    case pki::Check::wrong_name:
    case pki::Check::malformed: break;
    }
    return X509_V_ERR_CERT_NOT_YET_VALID;
}

pki::Verification check_peer(X509_STORE_CTX *store, const TlsContext &context, TlsPeer &peer, TlsPeer &claimed) {
    const std::string der = der_of(X509_STORE_CTX_get0_cert(store));
    std::optional<pki::Certificate> authority = context.authority;
    if (!authority) authority = shown_authority(store, *context.authority_hash);
    if (!authority) return {pki::Check::unknown_authority, other_authority_words};
    const auto c = pki::read_certificate(der);
    if (c) claimed.role = c->role, claimed.name = c->name;
    const bool other = c && std::find(context.also.begin(), context.also.end(), c->role) != context.also.end();
    pki::Verification verdict = pki::verify(der, *authority, other ? c->role : context.role, "", wall_clock_s());
    if (!verdict) return verdict;
    peer = TlsPeer{c->role, c->name, c->serial, c->key, c->not_after_s};
    return verdict;
}

// In the place of OpenSSL's own verification. That the peer has the certificate's key is checked by the handshake.
int verify_peer(X509_STORE_CTX *store, void *) {
    auto *ssl = static_cast<SSL *>(X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx()));
    auto *checked = static_cast<TlsChecked *>(SSL_get_app_data(ssl));
    checked->verdict = check_peer(store, *checked->context, checked->peer, checked->claimed);
    X509_STORE_CTX_set_error(store, alert_of(checked->verdict.check));
    return checked->verdict ? 1 : 0;
}

Status use_own(SSL_CTX *ssl, const TlsSelf &self) {
    const pki::KeyPtr key(pki::from_der<EVP_PKEY>(self.key, d2i_AutoPrivateKey));
    const pki::X509Ptr certificate(pki::from_der<X509>(self.certificate, d2i_X509));
    pki::X509Ptr authority(pki::from_der<X509>(self.authority, d2i_X509));
    const bool good = key && certificate && authority && SSL_CTX_use_certificate(ssl, certificate.get()) == 1 &&
                      SSL_CTX_use_PrivateKey(ssl, key.get()) == 1 && SSL_CTX_check_private_key(ssl) == 1 &&
                      SSL_CTX_add_extra_chain_cert(ssl, authority.get()) == 1;
    ERR_clear_error();
    if (!good) return fail(Code::invalid, "the key and the certificate do not belong together, or cannot be used");
    (void)authority.release();  // it is the context's now
    return Status::ok();
}

bool settle(SSL_CTX *ssl, const TlsTrust &trust, bool has_own) {
    SSL_CTX_set_options(ssl, SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
    SSL_CTX_set_session_cache_mode(ssl, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_mode(ssl, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_AUTO_RETRY);
    SSL_CTX_set_max_cert_list(ssl, 4 * limits::certificate_bytes);
    const int without = trust.strangers || !has_own ? 0 : SSL_VERIFY_FAIL_IF_NO_PEER_CERT;
    SSL_CTX_set_verify(ssl, SSL_VERIFY_PEER | without, nullptr);
    SSL_CTX_set_cert_verify_callback(ssl, verify_peer, nullptr);
    return SSL_CTX_set_min_proto_version(ssl, TLS1_3_VERSION) == 1 &&
           SSL_CTX_set_max_proto_version(ssl, TLS1_3_VERSION) == 1 && SSL_CTX_set_num_tickets(ssl, 0) == 1 &&
           SSL_CTX_set_max_early_data(ssl, 0) == 1 && SSL_CTX_set_recv_max_early_data(ssl, 0) == 1 &&
           SSL_CTX_set1_groups_list(ssl, "X25519:P-256") == 1;
}

}  // namespace

Result<TlsContextPtr> tls_context(const TlsSelf &self, const TlsTrust &trust) {
    // What the environment of the process says about OpenSSL does not count.
    OPENSSL_init_ssl(OPENSSL_INIT_NO_LOAD_CONFIG, nullptr);
    auto context = std::make_shared<TlsContext>();
    context->ssl.reset(SSL_CTX_new(TLS_method()));
    DCS_REQUIRE(context->ssl && settle(context->ssl.get(), trust, !self.key.empty()), "libssl knows TLS 1.3");
    context->authority_hash = trust.authority_hash;
    context->role = trust.role;
    context->also = trust.also;
    if (!trust.authority.empty()) {
        auto authority = pki::read_certificate(trust.authority);
        if (!authority) return fail(Code::invalid, "the authority's certificate: " + authority.status().text);
        context->authority = std::move(*authority);
    }
    DCS_REQUIRE(context->authority.has_value() != context->authority_hash.has_value(), "an authority is named once");
    if (!self.key.empty())
        if (Status s = use_own(context->ssl.get(), self); !s) return s;
    return context;
}

}  // namespace dcs::net
