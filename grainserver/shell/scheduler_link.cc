#include "grainserver/shell/scheduler_link.h"

#include "base/clock.h"
#include "net/tcp_socket.h"

namespace dcs::server {
namespace {
constexpr Duration look_pause = seconds(3600);
// What a person can do about it.
constexpr const char *join_advice = "; let this host join the pool: `dcs token create` on the scheduler's host prints "
                                    "the command for it";
}  // namespace

Status SchedulerLink::open(const std::string &scheduler, const std::string &pki_directory, const std::string &host) {
    scheduler_ = scheduler;
    directory_ = pki_directory;
    host_ = host;
    tls_ = scheduler.find('/') == std::string::npos;
    if (!tls_) return Status::ok();
    if (const auto address = net::parse_tcp_address(scheduler); !address)
        return fail(Code::invalid, "--scheduler: " + address.status().text +
                                       "; a name with a slash in it is a socket of this host");
    const auto who = identity();
    return who ? Status::ok() : who.status();
}

Result<pki::Identity> SchedulerLink::identity() const {
    auto who = pki::read_identity(directory_);
    if (!who) return fail(Code::invalid, who.status().text + join_advice);
    const auto verdict =
        pki::verify(who->certificate, who->authority, pki::Role::grain_server, host_, wall_clock_s());
    if (!verdict) return fail(Code::invalid, directory_ + ": " + verdict.text + join_advice);
    return who;
}

Result<ConnId> SchedulerLink::connect(net::Loop &loop, const net::Limits &limits) {
    if (!tls_) return loop.connect_unix(scheduler_, limits);
    const auto who = identity();
    if (!who) return who.status();
    net::TlsTrust trust;
    trust.authority = who->authority.der;
    trust.role = pki::Role::scheduler;
    auto context = net::tls_context({who->key, who->certificate.der, who->authority.der}, trust);
    if (!context) return context.status();
    look_at_ = Instant{};
    return loop.connect_tls(scheduler_, limits, std::move(*context));
}

std::optional<wire::AnyMessage> SchedulerLink::wish(Instant now) {
    if (!tls_ || now < look_at_) return std::nullopt;
    look_at_ = now + look_pause;
    const auto who = identity();
    if (!who || !pki::wants_renewal(who->certificate, wall_clock_s())) return std::nullopt;
    auto request = pki::make_request(who->key);
    if (!request) return std::nullopt;
    return wire::RenewCertificate{std::move(*request)};
}

Status SchedulerLink::renewed(const wire::Renewed &answer) {
    auto who = identity();
    if (!who) return who.status();
    auto fresh = pki::read_certificate(answer.certificate);
    if (!fresh) return fail(Code::protocol, "the scheduler's new certificate for us: " + fresh.status().text);
    const auto verdict = pki::verify(*fresh, who->authority, pki::Role::grain_server, host_, wall_clock_s());
    if (!verdict) return fail(Code::protocol, "the scheduler's new certificate for us: " + verdict.text);
    if (fresh->key != who->certificate.key)
        return fail(Code::protocol, "the scheduler's new certificate for us is for another key");
    who->certificate = std::move(*fresh);
    return pki::write_identity(directory_, *who);
}

}  // namespace dcs::server
