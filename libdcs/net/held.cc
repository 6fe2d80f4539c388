#include <algorithm>
#include <unistd.h>

#include "base/limits.h"
#include "base/load_limits.h"
#include "base/planted.h"
#include "base/require.h"
#include "net/asio_loop.h"

// What is held in memory for connections, and who answers for it.
namespace dcs::net {
namespace {
constexpr std::size_t handshake_piece = 16 * 1024;  // is read at once from who is not known yet
constexpr std::size_t least_piece = 1024;
}  // namespace

// Who answers for what is held for a peer: the user of a control program, whose name is USER/HOST/IDENT; dcs_begin's
// host. Servers and backups have few connections, each with its own limits.
std::string payer_of(const TlsPeer &peer) {
    if (peer.role == pki::Role::program) return "user " + peer.name.substr(0, peer.name.find('/'));
    return peer.role == pki::Role::client ? "host " + peer.name : std::string();
}
OfUser &AsioLoop::payer_for(const Wire &wire) {
    return wire.tls ? held_[wire.charged_to] : of_user_[{wire.door, wire.peer.uid}];
}

void AsioLoop::uncharge(Wire &wire) {
    if (wire.tls ? wire.charged_to.empty() : wire.counted == 0) return;
    OfUser &payer = payer_for(wire);
    DCS_REQUIRE(payer.bytes >= wire.counted, "what is held of one connection is part of what its user holds");
    payer.bytes -= std::exchange(wire.counted, 0);
    if (wire.tls && --payer.connections == 0) held_.erase(wire.charged_to);
    if (wire.tls) wire.charged_to.clear();
}

// What one recv may bring. All connections of a user bring together about as much as one, so that others wait no longer
// for their number.
std::size_t AsioLoop::piece_of(const Wire &wire) {
    if (wire.handshaking) return handshake_piece;
    if (wire.door < 0 || (wire.tls && wire.charged_to.empty()) || planted("net.as_much_as_there_is"))
        return buffer_.size();
    return std::max(least_piece, buffer_.size() / std::max<std::size_t>(1, payer_for(wire).connections));
}

// What is held for a connection counts for its user, through any door. False: it was too much, and the
// connection ended.
bool AsioLoop::charge(Wire &wire) {
    if (wire.door < 0 || !wire.alive || (wire.tls && wire.charged_to.empty())) return wire.alive;
    const std::size_t now = wire.reader.held() + wire.out.bytes() + (wire.tls ? wire.tls->waiting() : 0);
    const bool more = now > wire.counted;
    std::size_t &sum = payer_for(wire).bytes;
    DCS_REQUIRE(sum >= wire.counted, "what is held of one connection is part of what its user holds");
    sum += now - wire.counted;
    wire.counted = now;
    if (now == 0) return true;
    const bool ours = !wire.tls && wire.peer.uid == ::geteuid();
    if (!more || sum <= limits::held_bytes || ours) return true;
    const Status why =
        fail(Code::limit,
             "more than " + std::to_string(limits::held_bytes) +
                 " bytes are held for "
                 "this user, in incomplete messages and unread answers: read the answers, or send less at a time");
    answer_nonsense(wire, why);
    lose(wire, why.text);
    return false;
}

void AsioLoop::charge_to(Wire &wire, std::string who) {
    uncharge(wire);
    wire.charged_to = std::move(who);
    if (!wire.charged_to.empty()) ++held_[wire.charged_to].connections;
}

}  // namespace dcs::net
