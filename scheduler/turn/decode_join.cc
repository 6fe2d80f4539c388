#include "scheduler/turn/decode_join.h"

#include "pki/digest.h"
#include "pki/key.h"

namespace dcs::turn {
namespace {

std::string_view bytes_of(const Token &token) {
    return std::string_view(reinterpret_cast<const char *>(token.data()), token.size());
}

Decoded refuse(const Connection &who, Code code, const std::string &text) {
    Decoded d;
    d.reply = wire::ErrorReply{static_cast<std::int32_t>(code), text};
    d.close = true;
    d.note = who.address + ": " + text;
    return d;
}

}  // namespace

core::CreateCode create_code(Outside &outside, wire::CreateToken call) {
    core::CreateCode create;
    create.host = std::move(call.host);
    create.ttl_s = call.ttl_s;
    create.wall_s = outside.wall_s();
    create.fresh = outside.fresh_token();
    create.hash = pki::sha256(bytes_of(create.fresh));
    const Outside::TlsDoor door = outside.tls_door();
    create.address = door.address;
    create.authority = door.authority;
    return create;
}

core::ListCodes list_codes(Outside &outside) {
    const Outside::TlsDoor door = outside.tls_door();
    return core::ListCodes{outside.wall_s(), door.address, door.authority};
}

Decoded join_frame(Outside &outside, const Arrival &arrival, const Connection &who, wire::AnyMessage message) {
    auto *call = std::get_if<wire::JoinHost>(&message);
    if (!call)
        return refuse(who, Code::refused, std::string("a host without a certificate may not send ") +
                                              wire::kind_name(message) + ": it must join the pool first");
    if (call->protocol != wire::protocol_version)
        return refuse(who, Code::protocol, "the host speaks protocol " + std::to_string(call->protocol) +
                                               ", the scheduler " + std::to_string(wire::protocol_version));
    if (!call->token.empty() && call->token.size() != std::tuple_size<Token>::value)
        return refuse(who, Code::invalid, "a code for joining has 32 bytes, this one has " +
                                              std::to_string(call->token.size()));
    auto request = pki::read_request(call->request);
    if (!request) return refuse(who, Code::invalid, request.status().text);
    core::JoinCall join;
    join.conn = arrival.conn;
    join.request = arrival.header.request;
    join.host = std::move(call->host);
    join.own_name = std::move(call->own_name);
    join.address = who.address;
    join.has_code = !call->token.empty();
    if (join.has_code) join.code = pki::sha256(call->token);
    join.key = request->hash;
    join.public_key = std::move(request->public_key);
    join.wall_s = outside.wall_s();
    Decoded d;
    d.input = std::move(join);
    return d;
}

Decoded renewal(Outside &outside, const Connection &who, const wire::RenewCertificate &call) {
    const auto no = [&](const std::string &why) {
        Decoded d;
        d.note = "host " + who.certified.host + " gets no new certificate: " + why;
        return d;
    };
    if (who.certified.host.empty()) return no("its link is not a TLS connection");
    const auto request = pki::read_request(call.request);
    if (!request) return no(request.status().text);
    if (request->hash != who.certified.key)
        return no("it asks for another key than the one of its present certificate");
    auto issued = outside.issue_certificate(who.certified.host, request->public_key);
    if (!issued) return no(issued.status().text);
    Decoded d;
    d.reply = wire::Renewed{std::move(issued->certificate)};
    return d;
}

}  // namespace dcs::turn
