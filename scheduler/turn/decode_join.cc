#include "scheduler/turn/decode.h"

#include "base/load_limits.h"
#include "base/planted.h"
#include "base/text.h"
#include "pki/authority.h"
#include "pki/digest.h"
#include "pki/key.h"
#include "scheduler/core/authorise.h"
#include "wire/checks.h"

namespace dcs::turn {
namespace {

std::string_view bytes_of(const Token &token) {
    return std::string_view(reinterpret_cast<const char *>(token.data()), token.size());
}

Decoded refuse(const Connection &who, Code code, const std::string &text) {
    return {.reply = wire::error_reply(fail(code, text)), .close = true, .note = who.address + ": " + text};
}

Result<Decoded> renewed_for(Outside &outside, const Connection &who, const wire::RenewCertificate &call,
                            core::HostRole role) {
    const auto request = pki::read_request(call.request);
    if (!request) return request.status();
    if (request->hash != who.certified.key)
        return fail(Code::refused, "the requested key is not the key of its present certificate");
    auto issued = outside.issue_certificate(who.certified.host, request->public_key, role);
    if (!issued) return issued.status();
    Decoded d;
    if (const auto fresh = pki::read_certificate(issued->certificate))
        d.input = core::CertificateRenewed{role, {who.certified.host, request->hash, fresh->not_after_s}};
    d.reply = wire::Renewed{std::move(issued->certificate)};
    return d;
}

}  // namespace

std::optional<Decoded> refuse_renewal(DecodeContext &context, const Connection &who, const wire::AnyMessage &message) {
    if (!std::holds_alternative<wire::RenewCertificate>(message) || planted("turn.renew_for_ever")) return {};
    const TokenHash &key = who.certified.key;
    const std::string sender = who.door == Door::user ? "user " + who.user : std::string(key.begin(), key.end());
    if (context.renewals.allow(sender, context.outside.now())) return {};
    std::string why = "more than " + std::to_string(limits::log_lines_at_once) +
                      " certificates were asked for with one key: one per second is issued";
    if (who.door == Door::begin) return refuse(who, Code::limit, why);
    if (who.door != Door::user) return Decoded{.note = std::move(why)};
    return Decoded{.reply = wire::error_reply(fail(Code::limit, std::move(why)))};
}

core::CreateCode create_code(Outside &outside, wire::CreateToken call) {
    core::CreateCode create;
    create.host = std::move(call.host);
    create.ttl_s = call.ttl_s;
    create.role = core::good_role(call.role) ? static_cast<core::HostRole>(call.role) : core::HostRole::server;
    create.wall_s = outside.wall_s();
    create.fresh = outside.fresh_token();
    create.hash = pki::sha256(bytes_of(create.fresh));
    const Outside::TlsDoor door = outside.tls_door();
    create.address = create.role == core::HostRole::client ? door.users : door.address;
    create.authority = door.authority;
    return create;
}

core::ListCodes list_codes(Outside &outside) {
    const Outside::TlsDoor door = outside.tls_door();
    return core::ListCodes{outside.wall_s(), door.address, door.authority};
}

Decoded join_frame(Outside &outside, const Arrival &arrival, const Connection &who, wire::AnyMessage message) {
    auto *call = std::get_if<wire::JoinHost>(&message);
    if (!core::may_say(core::Party::stranger, message) || !call)
        return refuse(who, Code::refused,
                      std::string("a host without a certificate may not send ") + wire::kind_name(message) +
                          ": it must join the pool first");
    if (!call->token.empty() && call->token.size() != std::tuple_size<Token>::value)
        return refuse(who, Code::invalid,
                      "a code for joining must have 32 bytes, but this one has " + std::to_string(call->token.size()));
    if (!core::good_role(call->role))
        return refuse(who, Code::invalid,
                      "a host must join for its grain server, for its control programs, or as the backup");
    auto request = pki::read_request(call->request);
    if (!request) return refuse(who, Code::invalid, request.status().text);
    core::JoinCall join;
    join.conn = arrival.conn;
    join.request = core::RequestId{arrival.header.request};
    join.host = std::move(call->host);
    join.own_name = std::move(call->own_name);
    join.address = who.address;
    join.role = static_cast<core::HostRole>(call->role);
    join.has_code = !call->token.empty();
    if (join.has_code) join.code = pki::sha256(call->token);
    join.key = request->hash;
    join.public_key = std::move(request->public_key);
    join.wall_s = outside.wall_s();
    join.until_s = join.wall_s + pki::certificate_life_s;
    return {.input = std::move(join)};
}

Decoded begin_frame(const core::State &state, Outside &outside, const Arrival &arrival, const Connection &who,
                    wire::AnyMessage message) {
    if (!core::may_say(core::Party::begin, message))
        return refuse(who, Code::refused,
                      std::string("dcs_begin of another host must not send ") + wire::kind_name(message));
    if (const auto *renew = std::get_if<wire::RenewCertificate>(&message)) {
        if (Status s = core::check_client(state, who.certified); !s) return refuse(who, s.code, s.text);
        auto renewed = renewed_for(outside, who, *renew, core::HostRole::client);
        if (!renewed) return refuse(who, renewed.status().code, renewed.status().text);
        renewed->close = true;
        return std::move(*renewed);
    }
    auto *call = std::get_if<wire::BeginControl>(&message);
    const auto key = pki::hash_of_public_key(call->public_key);
    if (!key) return refuse(who, Code::invalid, "the key of the control program: " + key.status().text);
    core::BeginControl begin;
    begin.conn = arrival.conn;
    begin.request = core::RequestId{arrival.header.request};
    begin.from = who.certified;
    begin.address = who.address;
    begin.user = std::move(call->user);
    begin.ident = std::move(call->ident);
    begin.public_key = std::move(call->public_key);
    begin.key = *key;
    begin.fresh = outside.fresh_token();
    begin.fresh_hash = pki::sha256(bytes_of(begin.fresh));
    // A look-up may take long, so only a host that may begin programs of this user causes one.
    begin.login = core::check_origin(state, who.certified, begin.user);
    if (begin.login) begin.login = outside.check_login(begin.user);
    begin.wall_s = outside.wall_s();
    return {.input = std::move(begin)};
}

Result<core::RenewProgram> program_renewal(Outside &outside, const wire::RenewCertificate &call) {
    auto request = pki::read_request(call.request);
    if (!request) return request.status();
    return core::RenewProgram{std::move(request->public_key), request->hash, outside.wall_s()};
}

Decoded renewal(Outside &outside, const Connection &who, const wire::RenewCertificate &call) {
    const bool backup = who.door == Door::backup;
    auto renewed = who.certified.host.empty()
                       ? Result<Decoded>(fail(Code::refused, "its link is not a TLS connection"))
                       : renewed_for(outside, who, call, backup ? core::HostRole::backup : core::HostRole::server);
    if (!renewed) return {.note = "host " + who.certified.host + " gets no new certificate: " + renewed.status().text};
    return std::move(*renewed);
}

}  // namespace dcs::turn
