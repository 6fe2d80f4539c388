#include "client/remote.h"

#include <algorithm>
#include <mutex>

#include <pthread.h>

#include "base/clock.h"
#include "base/ids.h"
#include "net/tcp_socket.h"
#include "pki/authority.h"
#include "pki/key.h"

namespace dcs::client {
namespace {

constexpr std::string_view head = "DCS-CREDENTIALS 1\n", scheduler_word = "scheduler ", token_word = "token ";
constexpr std::string_view certificate_begin = "-----BEGIN CERTIFICATE-----";
constexpr Duration renewal_pause = seconds(60);

struct Present {
    std::mutex mutex;
    RemotePtr remote;
    Instant not_before{};  // of the next attempt to renew
};
Present &present();
void hold_for_fork() { present().mutex.lock(); }
void let_go_after_fork() { present().mutex.unlock(); }

Present &present() {
    static Present *p = [] {  // never destroyed, as process() is not
        ::pthread_atfork(hold_for_fork, let_go_after_fork, let_go_after_fork);
        return new Present;
    }();
    return *p;
}

Status wrong(const std::string &what) { return fail(Code::invalid, "the credentials of dcs_begin: " + what); }

// The rest of a line that begins with `word`; the text goes on behind it.
std::optional<std::string_view> line(std::string_view &text, std::string_view word) {
    const std::size_t end = text.find('\n');
    if (end == std::string_view::npos || text.substr(0, word.size()) != word) return std::nullopt;
    const std::string_view rest = text.substr(word.size(), end - word.size());
    text.remove_prefix(end + 1);
    return rest;
}

int digit(char c) { return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1; }

std::optional<std::string> from_hex(std::string_view text) {
    std::string bytes;
    if (text.size() != 2 * sizeof(Token)) return std::nullopt;
    for (std::size_t i = 0; i < text.size(); i += 2) {
        if (digit(text[i]) < 0 || digit(text[i + 1]) < 0) return std::nullopt;
        bytes += static_cast<char>(16 * digit(text[i]) + digit(text[i + 1]));
    }
    return bytes;
}

Result<net::TlsContextPtr> context_of(const Remote &remote) {
    net::TlsTrust trust;
    trust.authority = remote.authority;
    trust.role = pki::Role::scheduler;
    return net::tls_context({remote.key, remote.certificate.der, remote.authority}, trust);
}

Status replace(Remote next) {
    auto context = context_of(next);
    if (!context) return context.status();
    auto addresses = net::parse_tcp_addresses(next.address);
    if (!addresses) return addresses.status();
    next.addresses = std::move(*addresses);
    next.context = std::move(*context);
    const std::lock_guard lock(present().mutex);
    next.version = present().remote ? present().remote->version + 1 : 1;
    present().remote = std::make_shared<const Remote>(std::move(next));
    return Status::ok();
}

}  // namespace

Result<RemoteCredentials> read_remote_credentials(const std::string &text) {
    std::string_view rest = text;
    if (rest.substr(0, head.size()) != head) return wrong("they are of another version than this library");
    rest.remove_prefix(head.size());
    const auto address = line(rest, scheduler_word), digits = line(rest, token_word);
    const auto token = digits ? from_hex(*digits) : std::nullopt;
    if (!address || !token) return wrong("they name no scheduler and token");
    const std::size_t first = rest.find(certificate_begin);
    const std::size_t second = first == rest.npos ? rest.npos : rest.find(certificate_begin, first + 1);
    if (second == rest.npos) return wrong("two certificates are due in them");
    RemoteCredentials read;
    read.address = std::string(*address);
    const auto list = net::parse_tcp_addresses(read.address);
    if (!list) return wrong("the scheduler: " + list.status().text);
    read.token = *token;
    auto key = pki::key_from_pem(rest.substr(0, first));
    const auto own = pki::certificate_from_pem(rest.substr(first, second - first));
    auto authority = pki::certificate_from_pem(rest.substr(second));
    if (!key || !own || !authority) return wrong("a key and two certificates are due in them");
    auto certificate = pki::read_certificate(*own);
    if (!certificate) return wrong("the certificate: " + certificate.status().text);
    read.key = std::move(*key);
    read.certificate = std::move(*certificate);
    read.authority = std::move(*authority);
    return read;
}

RemotePtr remote() {
    const std::lock_guard lock(present().mutex);
    return present().remote;
}

Status use_remote(const RemoteCredentials &c) {
    return replace(Remote{c.address, c.key, c.authority, {}, c.certificate, nullptr, 0});
}

Status use_renewed(const std::string &der) {
    const RemotePtr now = remote();
    auto certificate = pki::read_certificate(der);
    if (!certificate) return fail(Code::protocol, "the certificate that came: " + certificate.status().text);
    if (certificate->key != now->certificate.key || certificate->name != now->certificate.name)
        return fail(Code::protocol, "the certificate that came is for somebody else");
    return replace(Remote{now->address, now->key, now->authority, {}, std::move(*certificate), nullptr, 0});
}

bool take_renewal() {
    const Instant now = boot_clock();
    const std::lock_guard lock(present().mutex);
    Present &p = present();
    if (!p.remote || now < p.not_before || !pki::wants_renewal(p.remote->certificate, wall_clock_s())) return false;
    p.not_before = now + renewal_pause;
    return true;
}

Instant renewal_due(Instant now) {
    const std::lock_guard lock(present().mutex);
    const Present &p = present();
    if (!p.remote) return Instant::never();
    const pki::Certificate &c = p.remote->certificate;
    const std::int64_t life = c.not_after_s - c.not_before_s;
    const std::int64_t left = std::max<std::int64_t>(c.not_after_s - life / 3 - wall_clock_s(), 0);
    return std::max(now + seconds(left + 1), p.not_before);
}

}  // namespace dcs::client
