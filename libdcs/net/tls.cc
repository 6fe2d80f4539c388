#include "net/tls.h"

#include <algorithm>

#include <openssl/ssl.h>

#include "base/clock.h"
#include "base/known_words.h"
#include "base/limits.h"
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

constexpr unsigned char handshake_record = 22, alert_record = 21;

struct Alert {
    int reason;
    const char *from_door, *from_caller;  // what it means when the other side says it
};
// What a peer says when it refuses us. The caller's own certificate is what a door looks at.
constexpr Alert alerts[] = {
    {SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED,
     "the scheduler refuses our certificate: it has expired (or a clock is wrong)",
     "the peer refuses our certificate: it has expired (or a clock is wrong)"},
    {SSL_R_TLSV1_ALERT_UNKNOWN_CA, "the scheduler refuses our certificate: it was issued by another authority",
     "the peer refuses our certificate: it was issued by another authority"},
    {SSL_R_SSLV3_ALERT_UNSUPPORTED_CERTIFICATE, "the scheduler refuses our certificate: it is for another role",
     "the peer refuses our certificate: it is for another role"},
    {SSL_R_SSLV3_ALERT_BAD_CERTIFICATE, "the scheduler refuses our certificate: it is malformed or not valid yet",
     "the peer refuses our certificate: it is malformed or not valid yet"},
    {SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED, "the scheduler requires a certificate: join this host to the pool first",
     "the peer requires a certificate"},
    {SSL_R_TLSV1_ALERT_PROTOCOL_VERSION, "the scheduler and this program have no TLS version in common",
     "the peer and this program have no TLS version in common: TLS 1.3 is required"},
};

std::string library_reason(unsigned long error) {
    if (const char *text = ERR_reason_error_string(error)) return text;
    char number[256];  // of the system, or of a library that has no words
    ERR_error_string_n(error, number, sizeof number);
    return number;
}

// Null: nothing that the other side meant.
const char *explain(unsigned long error, bool at_door) {
    const int reason = ERR_GET_REASON(error);
    for (const Alert &a : alerts)
        if (reason == a.reason) return at_door ? a.from_caller : a.from_door;
    if (reason == SSL_R_UNSUPPORTED_PROTOCOL)
        return at_door ? "the peer offers TLS 1.2 or older, but TLS 1.3 is required"
                       : "the scheduler offers TLS 1.2 or older, but TLS 1.3 is required";
    if (reason == SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE) return "the peer sent no certificate";
    return nullptr;
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

struct TlsSession::Inside {
    TlsContextPtr context;
    TlsChecked checked;
    std::unique_ptr<SSL, pki::Release<SSL_free>> ssl;
    BIO *in = nullptr, *out = nullptr;  // of ssl
    Side side;
    bool begun = false, open = false, ended = false;
    bool about_time = false;
    std::string waiting;

    Status failed() {
        const unsigned long error = ERR_peek_last_error();
        const int reason = ERR_GET_REASON(error);
        ERR_clear_error();
        const pki::Check check = checked.verdict.check;
        about_time = check == pki::Check::expired || check == pki::Check::not_yet_valid;
        if (!checked.verdict) return fail(Code::refused, checked.verdict.text);
        // TLS has no alert for a certificate that is not valid yet.
        about_time = reason == SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED || reason == SSL_R_SSLV3_ALERT_BAD_CERTIFICATE;
        const char *known = explain(error, side == Side::door);
        if (known == nullptr) return fail(Code::broken, "TLS failed: " + library_reason(error));
        std::string words = known;
        constexpr std::string_view who = "the scheduler";
        if (checked.peer.role == pki::Role::backup && words.starts_with(who))
            words.replace(0, who.size(), "the backup");
        return fail(Code::refused, words);
    }
    // Blocked for want of bytes, or broken.
    bool wants_more(int result) const { return SSL_get_error(ssl.get(), result) == SSL_ERROR_WANT_READ; }

    Status look_at_first_byte(std::string_view bytes) {
        if (begun || bytes.empty()) return Status::ok();
        begun = true;
        const auto first = static_cast<unsigned char>(bytes[0]);
        if (first == handshake_record || first == alert_record) return Status::ok();
        return fail(Code::refused, side == Side::door ? "this is not TLS: the peer sends plain text"
                                                      : "this is not TLS: the address is not a TLS port");
    }
    Status shake_hands() {
        ERR_clear_error();
        const int result = SSL_do_handshake(ssl.get());
        if (result != 1 && SSL_get_error(ssl.get(), result) == SSL_ERROR_ZERO_RETURN)
            return fail(Code::broken, "the peer ended the TLS handshake");
        if (result != 1) return wants_more(result) ? Status::ok() : failed();
        open = true;
        write(std::exchange(waiting, {}));
        return Status::ok();
    }
    Status read(std::string *plain) {
        char piece[16 * 1024];
        for (;;) {
            ERR_clear_error();
            std::size_t n = 0;
            const int result = SSL_read_ex(ssl.get(), piece, sizeof piece, &n);
            if (result == 1) {
                plain->append(piece, n);
                continue;
            }
            ended = ended || SSL_get_error(ssl.get(), result) == SSL_ERROR_ZERO_RETURN;
            return ended || wants_more(result) ? Status::ok() : failed();
        }
    }
    void write(const std::string &plain) {
        std::size_t done = 0;
        if (plain.empty()) return;
        ERR_clear_error();
        // Into memory, so it takes all of it; on a connection that has failed it takes nothing, which is as good.
        if (SSL_write_ex(ssl.get(), plain.data(), plain.size(), &done) != 1) ERR_clear_error();
    }
};

TlsSession::TlsSession(TlsContextPtr context, Side side) : inside_(std::make_unique<Inside>()) {
    Inside &i = *inside_;
    i.context = std::move(context);
    i.side = side;
    i.checked.context = i.context.get();
    i.ssl.reset(SSL_new(i.context->ssl.get()));
    i.in = BIO_new(BIO_s_mem());
    i.out = BIO_new(BIO_s_mem());
    DCS_REQUIRE(i.ssl && i.in && i.out, "there is memory for a TLS session");
    BIO_set_mem_eof_return(i.in, -1);
    SSL_set_bio(i.ssl.get(), i.in, i.out);
    SSL_set_app_data(i.ssl.get(), &i.checked);
    if (side == Side::door) SSL_set_accept_state(i.ssl.get());
    else SSL_set_connect_state(i.ssl.get());
}
TlsSession::~TlsSession() = default;

Status TlsSession::feed(std::string_view from_wire, std::string *plain) {
    Inside &i = *inside_;
    if (Status s = i.look_at_first_byte(from_wire); !s) return s;
    if (!from_wire.empty()) {
        const int n = BIO_write(i.in, from_wire.data(), static_cast<int>(from_wire.size()));
        DCS_REQUIRE(n == static_cast<int>(from_wire.size()), "there is memory for what came");
    }
    if (!i.open)
        if (Status s = i.shake_hands(); !s) return s;
    return i.open ? i.read(plain) : Status::ok();
}

void TlsSession::send(std::string plain) {
    Inside &i = *inside_;
    if (i.open) i.write(plain);
    else i.waiting += plain;
}

std::string TlsSession::take_output() {
    BIO *out = inside_->out;
    std::string bytes(BIO_ctrl_pending(out), '\0');
    const int size = static_cast<int>(bytes.size());
    if (size > 0) DCS_REQUIRE(BIO_read(out, bytes.data(), size) == size, "what is pending can be read");
    return bytes;
}

bool TlsSession::open() const { return inside_->open; }
bool TlsSession::ended() const { return inside_->ended; }
std::size_t TlsSession::waiting() const { return inside_->waiting.size(); }
bool TlsSession::about_time() const { return inside_->about_time; }
const TlsPeer &TlsSession::peer() const { return inside_->checked.peer; }
const TlsPeer &TlsSession::claimed() const { return inside_->checked.claimed; }

}  // namespace dcs::net
