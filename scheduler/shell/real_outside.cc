#include "scheduler/shell/real_outside.h"

#include <cstdlib>

#include "base/clock.h"
#include "daemon/log.h"
#include "pki/digest.h"
#include "scheduler/core/authorise.h"

namespace dcs::shell {

Instant RealOutside::now() { return boot_clock(); }

std::int64_t RealOutside::wall_s() { return wall_clock_s(); }
std::int64_t RealOutside::wall_ms() { return wall_clock_ms(); }

Token RealOutside::fresh_token() { return pki::random_token(); }

void RealOutside::send(ConnId conn, const wire::AnyMessage &message, core::RequestId request) {
    const auto id = static_cast<std::uint64_t>(request);
    const Status s = loop_.send(conn, message, id);
    if (s) return;
    log_warn("connection " + to_text(conn) + ": " + wire::kind_name(message) + " was not sent: " + s.text);
    if (request != core::no_request)
        (void)loop_.send(conn, wire::ErrorReply{static_cast<std::int32_t>(s.code), s.text}, id);
}

void RealOutside::close(ConnId conn) { loop_.close(conn); }

void RealOutside::log(turn::Level level, const std::string &line) {
    core::is_audit(line) ? log_audit(line) : log_line(level, line);
}

void RealOutside::start_commit(std::vector<store::TreeUpdate> updates, store::Room room) {
    storage_.commit(std::move(updates), room);
}

void RealOutside::working_on(const SessionKey &session) { suspect_.working_on(session_text(session)); }
void RealOutside::working_for(const std::string &who) { suspect_.working_on(who); }

void RealOutside::set_log_level(const std::string &level) {
    if (const auto known = dcs::level_of(level)) log_set_level(*known);
}
void RealOutside::probe(const core::ProbeHost &probe) { prober_.ask(probe); }

turn::Outside::TlsDoor RealOutside::tls_door() {
    if (tls_ == nullptr) return {};
    using core::HostRole;
    return {tls_->address(HostRole::server), tls_->address(HostRole::client), tls_->authority_hash()};
}

Result<wire::Joined> RealOutside::issue_certificate(const std::string &host, const std::string &public_key,
                                                    core::HostRole role) {
    return tls_ != nullptr ? tls_->issue(host, public_key, role) : Outside::issue_certificate(host, public_key, role);
}

Result<wire::Begun> RealOutside::issue_program(const core::SendProgram &program) {
    return tls_ != nullptr ? tls_->issue(program) : Outside::issue_program(program);
}

void RealOutside::fatal(const std::string &why) {
    log_error(why + "; the scheduler ends without replying: restart it, and it recovers");
    std::_Exit(1);  // no destructor may touch the store now
}

}  // namespace dcs::shell
