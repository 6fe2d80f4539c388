#include "net/pool_link.h"

#include "base/clock.h"
#include "net/socket_calls.h"

namespace dcs::net {
namespace {
constexpr Duration look_pause = seconds(3600);
// What a person can do about it.
constexpr const char *join_advice =
    "; join this host to the pool: `dcs token create` on the scheduler's host prints the command";
}  // namespace

Status PoolLink::open(const std::string &scheduler, const std::string &pki_directory, pki::Role role,
                      const std::string &name) {
    scheduler_ = scheduler;
    directory_ = pki_directory;
    role_ = role;
    name_ = name;
    tls_ = scheduler.find('/') == std::string::npos;
    if (!tls_) return Status::ok();
    if (Status s = check_scheduler_option(scheduler); !s) return s;
    addresses_ = *parse_tcp_addresses(scheduler);
    const auto who = identity();
    return who ? Status::ok() : who.status();
}

Result<pki::Identity> PoolLink::identity() const {
    auto who = pki::read_identity(directory_);
    if (!who) return fail(Code::invalid, who.status().text + join_advice);
    const auto verdict = pki::verify(who->certificate, who->authority, role_, name_, wall_clock_s());
    if (!verdict) return fail(Code::invalid, directory_ + ": " + verdict.text + join_advice);
    return who;
}

Result<TlsContextPtr> PoolLink::context_for(pki::Role peers) const {
    const auto who = identity();
    if (!who) return who.status();
    TlsTrust trust{.authority = who->authority.der, .role = peers};
    return tls_context({who->key, who->certificate.der, who->authority.der}, trust);
}

Result<ConnId> PoolLink::connect(Loop &loop, const Limits &limits) {
    if (!tls_) return loop.connect_unix(scheduler_, limits);
    look_at_ = Instant{};
    last_ = next_;
    next_ = (next_ + 1) % addresses_.size();
    return connect_to(loop, limits, addresses_[last_], pki::Role::scheduler);
}

std::optional<Result<ConnId>> PoolLink::connect_elsewhere(Loop &loop, const Limits &limits) {
    if (addresses_.size() < 2) return std::nullopt;
    do elsewhere_ = (elsewhere_ + 1) % addresses_.size();
    while (elsewhere_ == last_);
    return connect_to(loop, limits, addresses_[elsewhere_], pki::Role::scheduler);
}

Result<ConnId> PoolLink::connect_to(Loop &loop, const Limits &limits, const std::string &address,
                                    pki::Role role) const {
    auto context = context_for(role);
    if (!context) return context.status();
    return loop.connect_tls(address, limits, std::move(*context));
}

std::optional<wire::AnyMessage> PoolLink::wish(Instant now) {
    if (!tls_ || now < look_at_) return std::nullopt;
    look_at_ = now + look_pause;
    const auto who = identity();
    if (!who || !pki::wants_renewal(who->certificate, wall_clock_s())) return std::nullopt;
    auto request = pki::make_request(who->key);
    if (!request) return std::nullopt;
    return wire::RenewCertificate{std::move(*request)};
}

Status PoolLink::renewed(const wire::Renewed &answer) {
    const auto who = identity();
    if (!who) return who.status();
    const auto next = pki::with_next(*who, answer.certificate, role_, wall_clock_s());
    return next ? pki::replace_certificate(directory_, next->certificate) : next.status();
}

}  // namespace dcs::net
