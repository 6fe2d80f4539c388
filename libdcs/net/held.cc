#include <unistd.h>

#include "base/limits.h"
#include "base/load_limits.h"
#include "base/require.h"
#include "net/asio_loop.h"

// What is held in memory for connections, and who answers for it.
namespace dcs::net {

// Who answers for what is held for a peer: the user of a control program, whose name is USER/HOST/IDENT; dcs_begin's
// host. Servers and backups have few connections, each with its own limits.
std::string payer_of(const TlsPeer &peer) {
    if (peer.role == pki::Role::program) return "user " + peer.name.substr(0, peer.name.find('/'));
    return peer.role == pki::Role::client ? "host " + peer.name : std::string();
}
std::size_t &AsioLoop::held_for(const Wire &wire) {
    return wire.tls ? held_[wire.charged_to] : of_user_[{wire.door, wire.peer.uid}].bytes;
}

void AsioLoop::uncharge(Wire &wire) {
    if (wire.counted == 0) return;
    DCS_REQUIRE(held_for(wire) >= wire.counted, "what is held of one connection is part of what its user holds");
    held_for(wire) -= std::exchange(wire.counted, 0);
    if (wire.tls && held_[wire.charged_to] == 0) held_.erase(wire.charged_to);
}

// What is held for a connection counts for its user, through any door. False: it was too much, and the
// connection ended.
bool AsioLoop::charge(Wire &wire) {
    if (wire.door < 0 || !wire.alive || (wire.tls && wire.charged_to.empty())) return wire.alive;
    const std::size_t now = wire.reader.held() + wire.out.bytes() + (wire.tls ? wire.tls->waiting() : 0);
    const bool more = now > wire.counted;
    std::size_t &sum = held_for(wire);
    DCS_REQUIRE(sum >= wire.counted, "what is held of one connection is part of what its user holds");
    sum += now - wire.counted;
    wire.counted = now;
    if (sum == 0 && wire.tls) held_.erase(wire.charged_to);
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
}

}  // namespace dcs::net
