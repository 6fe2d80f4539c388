#include "net/tls_session.h"

#include "net/tls_context.h"

namespace dcs::net {
namespace {

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
    {SSL_R_SSLV3_ALERT_BAD_CERTIFICATE,
     "the scheduler refuses our certificate: it is malformed or not valid "
     "yet",
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
