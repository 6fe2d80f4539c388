#include <algorithm>
#include <cerrno>
#include <sys/socket.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/planted.h"
#include "net/asio_loop.h"
#include "net/look_up.h"
#include "net/socket_calls.h"

// TLS connections: how they come, and what happens until their peers are known.
namespace dcs::net {
namespace {
constexpr Duration first_bytes = seconds(2);  // a caller speaks at once; who is late comes again

// A host by its key: of the keys that were ever certified for a name one counts now, which this loop does not know, and
// the others must not use up what that one has. A control program by its name, as its user can have as many keys as
// there are programs.
std::string counted_as(const TlsPeer &peer) {
    const std::string role = std::string(pki::name_of(peer.role)) + " ";
    if (peer.role == pki::Role::program || planted("net.count_by_name")) return role + peer.name;
    return role + std::string(peer.key.begin(), peer.key.end());
}

// A control program may have a connection for each of its threads, a host one for each dcs_begin that is just asking.
std::size_t most_of(pki::Role role) {
    const bool few = role != pki::Role::program && role != pki::Role::client;
    return few ? limits::connections_of_certificate : limits::connections_per_user;
}
}  // namespace

Result<Door> AsioLoop::listen_tls(const std::string &address, const Limits &limits, TlsContextPtr context) {
    const auto at = parse_tcp_address(address);
    if (!at) return at.status();
    const Result<int> fd = listen_tcp_socket(*at);
    if (!fd) return fd.status();
    return listen(*fd, address, limits, std::move(context));
}

std::uint16_t AsioLoop::port_of(Door door) const {
    return net::port_of(listeners_.at(static_cast<std::size_t>(door))->socket.native_handle());
}

void AsioLoop::set_tls(Door door, TlsContextPtr context) {
    listeners_.at(static_cast<std::size_t>(door))->tls = std::move(context);
}

ConnId AsioLoop::connect_tls(const std::string &address, const Limits &limits, TlsContextPtr context) {
    const WirePtr wire = begin_connect(limits);
    // At once: what is sent before there is a connection must not wait in the clear.
    wire->tls = std::make_unique<TlsSession>(std::move(context), TlsSession::Side::caller);
    const auto to = parse_tcp_address(address);
    if (to) asio::co_spawn(context_, connect_tls_peer(wire, *to), asio::detached);
    else lose(*wire, to.status().text);
    return wire->id;
}

// With the address that the name stands for: an entry of /etc/hosts may be wrong.
static std::string cannot_connect(const TcpAddress &to, const Place &place) {
    const std::string ip = ip_text(&place.address, place.size);
    return "cannot connect to " + to_text(to) + (ip == to.host ? "" : " (" + ip + ")");
}

Task AsioLoop::connect_tls_peer(WirePtr wire, TcpAddress to) {
    Result<Fd> asked = look_up(to.host, to.port);
    Found found{{}, asked.status().text};
    if (asked) {
        Descriptor answer(context_.get_executor(), asked->release());
        (void)co_await answer.async_wait(Descriptor::wait_read, awaiting);
        if (!wire->alive) co_return;
        found = read_found(answer.native_handle());
    }
    std::string why = "cannot find the host " + to.host + ": " + found.why;
    std::size_t left = found.places.size();
    for (const Place &place : found.places) {
        const Instant now = served_now(), until = share_of_time(wire->hello_by, now, left--);
        boost::system::error_code error;
        const int fd = begin_connect_tcp(&place.address, place.size);
        if (fd < 0 || wire->socket.assign(fd, error)) {
            why = fail_errno(Code::unreachable, cannot_connect(to, place), errno).text;
            if (fd >= 0) ::close(fd);
            continue;
        }
        using namespace asio::experimental::awaitable_operators;
        Timer timer(context_, std::chrono::nanoseconds((until - now).ns));
        const auto first =
            co_await (wire->socket.async_wait(Descriptor::wait_write, awaiting) || timer.async_wait(awaiting));
        if (!wire->alive) co_return;
        const bool in_time = first.index() == 0, waited = in_time && !std::get<0>(std::get<0>(first));
        const int failed = waited ? connect_error(fd) : in_time ? ECANCELED : ETIMEDOUT;
        if (failed == 0) {
            (void)begin_handshake(wire, fd);
            co_return;
        }
        why = fail_errno(Code::unreachable, cannot_connect(to, place), failed).text;
        wire->socket.close(error);
    }
    lose(*wire, why);
}

// The peer is not known yet: there may be few of them, and few from one network.
bool AsioLoop::make_room_for(const WirePtr &wire) {
    strangers_.tell_time(served_now());
    if (open_ >= limits::connections) return false;
    const std::optional<ConnId> goes = strangers_.add(wire->id, wire->network);
    if (!goes) return true;
    if (*goes == wire->id) return false;
    if (const WirePtr other = find(*goes))
        lose(*other, "closed to make room: too many peers there have not authenticated yet");
    return true;
}

void AsioLoop::let_stranger_in(Listener &listener, int fd) {
    auto wire = std::make_shared<Wire>(context_.get_executor());
    wire->id = next_connection();
    wire->address = address_of_peer(fd);
    wire->network = network_of_peer(fd);
    boost::system::error_code error;
    if (!make_room_for(wire) || wire->socket.assign(fd, error)) {
        strangers_.remove(wire->id);
        ::close(fd);
        return;
    }
    wire->door = listener.door;
    wire->limits = listener.limits;
    wire->told = false;
    wire->tls = std::make_unique<TlsSession>(listener.tls, TlsSession::Side::door);
    wire->stranger = true;
    charge_to(*wire, "network " + wire->network);
    ++open_;
    wires_[wire->id] = wire;
    if (wire->limits.hello.ns > 0) {
        wire->shaken_by = served_now() + wire->limits.hello;
        wire->hello_by = served_now() + std::min(first_bytes, wire->limits.hello);
    }
    look_after(*wire);
    (void)begin_handshake(wire, fd);
}

bool AsioLoop::begin_handshake(const WirePtr &wire, int fd) {
    DCS_REQUIRE(wire->tls && !wire->connected, "a connection has one handshake");
    set_tcp_options(fd);
    wire->connected = true;
    wire->handshaking = true;
    std::string nothing;
    if (!decipher(*wire, "", &nothing)) return false;
    asio::co_spawn(context_, read_frames(wire), asio::detached);
    return true;
}

// False when the connection ended.
bool AsioLoop::decipher(Wire &wire, std::string_view bytes, std::string *plain) {
    const Status status = wire.tls->feed(bytes, plain);
    wire.out.push(wire.tls->take_output());
    if (!status) {
        turn_away(wire, status.text);
        return false;
    }
    if (wire.handshaking && wire.tls->open() && !handshake_is_over(wire)) return false;
    if (wire.handshaking && wire.door >= 0 && wire.shaken == 0 && !bytes.empty()) {
        strangers_.spoke(wire.id);
        wire.hello_by = wire.shaken_by;
    }
    wire.shaken += bytes.size();
    if (wire.handshaking && wire.shaken > limits::handshake_bytes) {
        turn_away(wire, "the TLS handshake exceeds its limit");
        return false;
    }
    if (!wire.out.empty() && !wire.writing) flush(find(wire.id));
    if (wire.alive && wire.tls->ended() && plain->empty()) lose(wire, "the peer closed the connection");
    return wire.alive;
}

bool AsioLoop::handshake_is_over(Wire &wire) {
    DCS_REQUIRE(wire.handshaking && wire.tls->open(), "a handshake is over once, when TLS says so");
    const TlsPeer &peer = wire.tls->peer();
    wire.handshaking = false;
    if (wire.door >= 0) {
        const std::string who = counted_as(peer);
        const auto others = of_certificate_.find(who);
        if (peer.role == pki::Role::none) {
            wire.limits.max_payload = wire.limits.stranger_payload;
        } else if (others != of_certificate_.end() && others->second >= most_of(peer.role)) {
            turn_away(wire, "there are " + std::to_string(most_of(peer.role)) +
                                " connections with the certificate of " + peer.name + " already");
            return false;
        } else {
            stop_counting(wire);
            strangers_.trust(wire.network, served_now());
            charge_to(wire, payer_of(peer));
            wire.counted_as = who;
            ++of_certificate_[who];
        }
        if (wire.limits.hello.ns > 0) wire.hello_by = served_now() + wire.limits.hello;
        look_after(wire);
    }
    wire.told = true;
    arrive({.what = What::opened, .conn = wire.id, .door = wire.door, .certified = peer, .address = wire.address});
    return true;
}

// With one try to let the peer know: by TLS, or in the clear if it does not speak that.
void AsioLoop::turn_away(Wire &wire, const std::string &why) {
    if (wire.out.empty()) answer_nonsense(wire, fail(Code::refused, why));
    [[maybe_unused]] const auto sent = wire.flush(wire.socket.native_handle(), served_now());
    lose(wire, why);
}

void AsioLoop::stop_counting(Wire &wire) {
    if (std::exchange(wire.stranger, false)) strangers_.remove(wire.id);
    if (wire.counted_as.empty()) return;
    const auto it = of_certificate_.find(std::exchange(wire.counted_as, {}));
    DCS_REQUIRE(it != of_certificate_.end() && it->second > 0, "each certificate that is shown is counted");
    if (--it->second == 0) of_certificate_.erase(it);
}

}  // namespace dcs::net
