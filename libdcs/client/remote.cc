#include "client/remote.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "base/text.h"
#include "base/ids.h"
#include "net/socket_calls.h"
#include "pki/authority.h"
#include "pki/key.h"

namespace dcs::client {
namespace {

constexpr std::string_view head = "DCS-CREDENTIALS 1\n", scheduler_word = "scheduler ", token_word = "token ";
constexpr std::string_view certificate_begin = "-----BEGIN CERTIFICATE-----";
constexpr Duration renewal_pause = seconds(60);

Status wrong(const std::string &what) { return fail(Code::invalid, "the credentials of dcs_begin: " + what); }

// The rest of a line that begins with `word`; the text goes on behind it.
std::optional<std::string_view> line(std::string_view &text, std::string_view word) {
    const std::size_t end = text.find('\n');
    if (end == std::string_view::npos || text.substr(0, word.size()) != word) return std::nullopt;
    const std::string_view rest = text.substr(word.size(), end - word.size());
    text.remove_prefix(end + 1);
    return rest;
}

Result<net::TlsContextPtr> context_of(const Remote &remote) {
    net::TlsTrust trust{.authority = remote.authority, .role = pki::Role::scheduler};
    return net::tls_context({remote.key, remote.certificate.der, remote.authority}, trust);
}

Status replace(Pool &pool, Remote next) {
    auto context = context_of(next);
    if (!context) return context.status();
    auto addresses = net::parse_tcp_addresses(next.address);
    if (!addresses) return addresses.status();
    next.addresses = std::move(*addresses);
    next.context = std::move(*context);
    pool.set_remote(std::make_shared<const Remote>(std::move(next)));
    return Status::ok();
}

bool wants_renewal(const Remote &remote) { return pki::wants_renewal(remote.certificate, wall_clock_s()); }

}  // namespace

Result<RemoteCredentials> read_remote_credentials(const std::string &text) {
    std::string_view rest = text;
    if (rest.substr(0, head.size()) != head) return wrong("their version is not that of this library");
    rest.remove_prefix(head.size());
    const auto address = line(rest, scheduler_word), digits = line(rest, token_word);
    const auto token = digits ? bytes_of_hex(*digits, sizeof(Token)) : std::nullopt;
    if (!address || !token) return wrong("they name no scheduler and token");
    const std::size_t first = rest.find(certificate_begin);
    const std::size_t second = first == rest.npos ? rest.npos : rest.find(certificate_begin, first + 1);
    if (second == rest.npos) return wrong("they do not contain two certificates");
    RemoteCredentials read{.address = std::string(*address)};
    const auto list = net::parse_tcp_addresses(read.address);
    if (!list) return wrong("the scheduler: " + list.status().text);
    read.token = *token;
    auto key = pki::key_from_pem(rest.substr(0, first));
    const auto own = pki::certificate_from_pem(rest.substr(first, second - first));
    auto authority = pki::certificate_from_pem(rest.substr(second));
    if (!key || !own || !authority) return wrong("a key and they do not contain two certificates");
    auto certificate = pki::read_certificate(*own);
    if (!certificate) return wrong("the certificate: " + certificate.status().text);
    read.key = std::move(*key);
    read.certificate = std::move(*certificate);
    read.authority = std::move(*authority);
    return read;
}

Status use_remote(Pool &pool, const RemoteCredentials &c) {
    return replace(pool, Remote{c.address, c.key, c.authority, {}, c.certificate, nullptr});
}

Status use_renewed(Pool &pool, const std::string &der) {
    const RemotePtr now = pool.remote();
    auto certificate = pki::read_certificate(der);
    if (!certificate) return fail(Code::protocol, "the received certificate: " + certificate.status().text);
    if (certificate->key != now->certificate.key || certificate->name != now->certificate.name)
        return fail(Code::protocol, "the received certificate is for another program");
    return replace(pool, Remote{now->address, now->key, now->authority, {}, std::move(*certificate), nullptr});
}

bool take_renewal(Pool &pool) { return pool.take_renewal(boot_clock(), renewal_pause, wants_renewal); }

Instant renewal_due(const Pool &pool, Instant now) {
    const RemotePtr remote = pool.remote();
    if (!remote) return Instant::never();
    const pki::Certificate &c = remote->certificate;
    const std::int64_t life = c.not_after_s - c.not_before_s;
    const std::int64_t left = std::max<std::int64_t>(c.not_after_s - life / 3 - wall_clock_s(), 0);
    return std::max(now + seconds(left + 1), pool.renewal_not_before());
}

}  // namespace dcs::client
