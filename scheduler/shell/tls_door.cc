#include "scheduler/shell/tls_door.h"

#include <cstdlib>

#include <unistd.h>

#include "base/clock.h"
#include "base/limits.h"
#include "base/text.h"
#include "daemon/log.h"
#include "net/socket_calls.h"

namespace dcs::shell {
namespace {

constexpr Duration look_pause = seconds(3600);
constexpr Duration doubted_for = seconds(60);  // a daemon that cannot connect tries again sooner
constexpr std::int64_t clock_step_s = 60;
constexpr std::int64_t authority_notice_s = 365 * pki::day_s;
constexpr std::int64_t own_notice_s = pki::certificate_life_s / 4;  // it is renewed when a third is left
constexpr int lines_a_second = 10;

net::Limits door_limits() {
    net::Limits limits;
    limits.max_payload = limits::server_frame_bytes;
    return limits;
}

// A user on another host cannot use "every address of that machine".
std::string told_address(net::TcpAddress address, std::uint16_t port) {
    char name[256] = "";
    if ((address.host == "0.0.0.0" || address.host == "::") && ::gethostname(name, sizeof name - 1) == 0)
        address.host = name;
    address.port = port;
    return to_text(address);
}

}  // namespace

// A key of our own that is never written down: it is generated and certified at each start.
Status TlsDoor::renew() {
    if (key_.empty()) key_ = pki::new_key();
    auto issued = keeper_.own_certificate(*pki::public_key_of(key_));
    if (!issued) return issued.status();
    auto own = pki::read_certificate(*issued);
    if (!own) return own.status();
    own_ = std::move(*own);
    return Status::ok();
}

Result<net::TlsContextPtr> TlsDoor::context_for(const Entrance &entrance) const {
    net::TlsSelf self;
    self.key = key_;
    self.authority = authority_.der;
    self.certificate = own_.der;
    net::TlsTrust trust;
    trust.authority = authority_.der;
    trust.role = entrance.roles.front();
    trust.also = {entrance.roles.begin() + 1, entrance.roles.end()};
    trust.strangers = true;
    return net::tls_context(self, trust);
}

Status TlsDoor::open(Entrance &entrance, const std::string &option, const std::string &address) {
    auto at = net::parse_tcp_address(address);
    if (!at) return fail(at.status().code, option + ": " + at.status().text);
    auto context = context_for(entrance);
    if (!context) return context.status();
    auto opened = loop_.listen_tls(address, door_limits(), *context);
    if (!opened) return opened.status();
    entrance.door = *opened;
    entrance.told = told_address(*at, loop_.port_of(*opened));
    return Status::ok();
}

Result<std::unique_ptr<TlsDoor>> TlsDoor::open(net::Loop &loop, keeper::KeeperClient &keeper,
                                               const std::string &address, const std::string &users) {
    std::unique_ptr<TlsDoor> door(new TlsDoor(loop, keeper));
    const auto der = keeper.authority();
    auto authority = der ? pki::read_certificate(*der) : Result<pki::Certificate>(der.status());
    if (!authority) return fail(authority.status().code, "the pool's authority: " + authority.status().text);
    door->authority_ = std::move(*authority);
    if (Status s = door->renew(); !s) return s;
    door->main_.roles = {pki::Role::grain_server, pki::Role::backup};
    if (!users.empty()) {
        door->users_.emplace().roles = {pki::Role::client, pki::Role::program};
        if (Status s = door->open(*door->users_, "--tls-users", users); !s) return s;
        log_info("control programs of other hosts are served at " + door->users_->told + ", and nowhere else");
    } else {
        door->main_.roles.insert(door->main_.roles.end(), {pki::Role::client, pki::Role::program});
    }
    if (Status s = door->open(door->main_, "--tls", address); !s) return s;
    log_info("serving other hosts at " + door->main_.told + " with TLS 1.3; the pool's authority is " +
             in_words(door->authority_.fingerprint));
    return door;
}

std::string TlsDoor::authority_hash() const {
    const TokenHash &hash = authority_.fingerprint;
    return std::string(hash.begin(), hash.end());
}

Result<wire::Joined> TlsDoor::issue(const std::string &host, const std::string &public_key, core::HostRole role) const {
    const auto wanted = role == core::HostRole::client   ? pki::Role::client
                        : role == core::HostRole::backup ? pki::Role::backup
                                                         : pki::Role::grain_server;
    auto issued = keeper_.certificate(wanted, host, public_key);
    if (!issued) return issued.status();
    if (const auto read = pki::read_certificate(*issued))
        log_audit("audit: certificate " + read->serial + " for " + pki::name_of(wanted) + " issued to host " + host);
    return wire::Joined{host, std::move(*issued), authority_.der};
}

Result<wire::Begun> TlsDoor::issue(const core::SendProgram &program) const {
    const std::string name = pki::name_of(pki::ProgramName{program.user, program.host, program.ident});
    auto issued = keeper_.certificate(pki::Role::program, name, program.public_key);
    if (!issued) return issued.status();
    if (const auto read = pki::read_certificate(*issued))
        log_audit("audit: certificate " + read->serial + " issued to control program " + name);
    return wire::Begun{"", std::move(*issued), authority_.der};
}

std::vector<wire::ProblemRow> certificate_problems(const pki::Certificate &authority, const pki::Certificate &own,
                                                   std::int64_t now_s) {
    std::vector<wire::ProblemRow> rows;
    const auto add = [&](const char *whose, const pki::Certificate &its, std::int64_t notice_s, const char *advice) {
        const std::int64_t left_s = its.not_after_s - now_s;
        if (left_s >= notice_s) return;
        const std::string problem =
            left_s <= 0 ? "has expired" : "expires in " + std::to_string(left_s / pki::day_s) + " days";
        rows.push_back({std::string("certificate of ") + whose, "", problem, "after that no host can connect", advice});
    };
    add("the pool's authority", authority, authority_notice_s,
        "stop the scheduler, move DIR/pki away, start it, and let all hosts join again");
    add("the scheduler", own, own_notice_s, "its renewal has failed: the scheduler's log says why");
    return rows;
}

std::vector<wire::ProblemRow> TlsDoor::problems() const {
    auto rows = certificate_problems(authority_, own_, wall_clock_s());
    const Instant now = boot_clock();
    if (!doubt_.empty() && now - doubted_ < doubted_for)
        rows.push_back({"certificate of the scheduler", "",
                        doubt_ + std::to_string(static_cast<int>((now - doubted_).seconds())) + " s ago)",
                        "hosts with that clock cannot connect", "set the clocks of this host and of that one right"});
    return rows;
}

void TlsDoor::look_after(Instant now) {
    // A certificate of a time when the clock was wrong would keep every host out until the next look.
    const std::int64_t set_to_s = wall_clock_s() - now.ns / 1'000'000'000;
    if (now < look_at_ && std::abs(set_to_s - set_to_s_) < clock_step_s) return;
    set_to_s_ = set_to_s;
    look_at_ = now + look_pause;
    if (authority_.not_after_s - wall_clock_s() < authority_notice_s)
        log_warn(
            "the certificate of the pool's authority expires within a year: all hosts must join again before "
            "that");
    if (!pki::wants_renewal(own_, wall_clock_s())) return;
    Status renewed = renew();
    for (const Entrance *entrance : {&main_, users_ ? &*users_ : nullptr}) {
        if (!renewed || entrance == nullptr) continue;
        const auto context = context_for(*entrance);
        if (context) loop_.set_tls(entrance->door, *context);
        else renewed = context.status();
    }
    if (!renewed) return log_error("the scheduler's own certificate cannot be renewed: " + renewed.text);
    log_info("the scheduler's own certificate was renewed");
}

core::ServerRefused TlsDoor::refused(Instant now, const net::Arrival &arrival) {
    // It ends the handshake before it shows a certificate of its own.
    if (arrival.about_time && arrival.certified.name.empty()) {
        doubted_ = now;
        doubt_ = arrival.why + " (a peer at " + arrival.address + ", ";
    }
    if (now - second_ >= seconds(1)) {
        if (untold_ > 0) log_warn("and " + std::to_string(untold_) + " more peers were refused");
        second_ = now;
        told_lines_ = untold_ = 0;
    }
    if (++told_lines_ > lines_a_second) ++untold_;
    else log_warn("a peer at " + arrival.address + " was refused: " + arrival.why);
    const bool server = arrival.certified.role == pki::Role::grain_server;
    return {server ? arrival.certified.name : "", arrival.address, arrival.why, arrival.about_time};
}

}  // namespace dcs::shell
