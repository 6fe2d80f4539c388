#include <atomic>
#include <cerrno>
#include <new>
#include <sys/socket.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/load_limits.h"
#include "net/asio_loop.h"
#include "net/socket_calls.h"

// Connections: how they come, what moves through them, how they end.
namespace dcs::net {
namespace {

constexpr std::size_t send_early_bytes = 256 * 1024;  // queued output does not wait for wait() above
constexpr int accepts_at_once = 64;                   // of one door, before the others have a turn
constexpr auto accept_pause = std::chrono::milliseconds(100);
constexpr auto connect_pause = std::chrono::milliseconds(20);
constexpr Duration farewell = seconds(30);  // for queued output where Limits say nothing

}  // namespace

ConnId next_connection() {
    static std::atomic<std::uint64_t> last{0};
    return ConnId{++last};
}

Result<Door> AsioLoop::listen_unix(const std::string &directory, const std::string &name, unsigned mode,
                                   const Limits &limits, std::optional<std::uint32_t> group) {
    Result<int> fd = listen_unix_socket(directory, name, mode, group);
    if (!fd) return fd.status();
    return listen(*fd, directory + "/" + name, limits, nullptr);
}

Result<Door> AsioLoop::listen(int fd, const std::string &where, const Limits &limits, TlsContextPtr context) {
    auto listener = std::make_shared<Listener>(context_.get_executor());
    boost::system::error_code error;
    if (listener->socket.assign(fd, error)) {
        ::close(fd);
        return fail(Code::io_error, "cannot wait for " + where + ": " + error.message());
    }
    listener->tls = std::move(context);
    listener->door = static_cast<Door>(listeners_.size());
    listener->limits = limits;
    listeners_.push_back(listener);
    asio::co_spawn(context_, accept_peers(listener), asio::detached);
    return listener->door;
}

Task AsioLoop::accept_peers(ListenerPtr listener) {
    Timer timer(context_);
    for (;;) {
        auto [error] = co_await listener->socket.async_wait(Descriptor::wait_read, awaiting);
        if (error) co_return;
        if (accept_some(*listener)) continue;
        // Few descriptors, or no memory: the queue keeps them, and asking at once would spin.
        timer.expires_after(accept_pause);
        co_await timer.async_wait(awaiting);
        if (!listener->socket.is_open()) co_return;
    }
}

// False when the system cannot give a connection now.
bool AsioLoop::accept_some(Listener &listener) {
    for (int n = 0; n < accepts_at_once; ++n) {
        const std::string why = few_descriptors(listener.socket.native_handle(), listener.limits.of_pool);
        if (!why.empty() && !std::exchange(held_up_, true)) arrive({.what = What::held_up, .why = why});
        if (!why.empty()) return false;
        int fd = accept_socket(listener.socket.native_handle());
        if (fd < 0) return errno == EAGAIN || errno == EWOULDBLOCK;
        if (listener.tls) let_stranger_in(listener, fd);
        else let_in(listener, fd);
    }
    return true;
}

// All users together leave some connections to those who run the pool.
bool AsioLoop::has_room(const Listener &listener, const Peer &peer) const {
    const bool ours = peer.uid == 0 || peer.uid == ::geteuid();
    if (open_ >= limits::connections - (ours ? 0 : limits::reserved_connections)) return false;
    const auto user = of_user_.find({listener.door, peer.uid});
    return user == of_user_.end() || user->second.connections < listener.limits.per_user;
}

void AsioLoop::let_in(Listener &listener, int fd) {
    const Peer peer = peer_of(fd);
    if (!has_room(listener, peer)) {
        ::close(fd);
        return;
    }
    auto wire = std::make_shared<Wire>(context_.get_executor());
    wire->id = next_connection();
    wire->door = listener.door;
    wire->peer = peer;
    wire->limits = listener.limits;
    if (!attach(wire, fd)) return;
    ++of_user_[{listener.door, peer.uid}].connections;
    ++open_;
    wires_[wire->id] = wire;
    if (wire->limits.hello.ns > 0) wire->hello_by = served_now() + wire->limits.hello;
    look_after(*wire);
    arrive({.what = What::opened, .conn = wire->id, .door = wire->door, .peer = peer});
}

bool AsioLoop::attach(const WirePtr &wire, int fd) {
    boost::system::error_code error;
    if (wire->socket.assign(fd, error)) {
        ::close(fd);
        return false;
    }
    DCS_REQUIRE(wire->alive && !wire->connected, "a connection gets one socket");
    wire->connected = true;
    asio::co_spawn(context_, read_frames(wire), asio::detached);
    return true;
}

WirePtr AsioLoop::begin_connect(const Limits &limits) {
    auto wire = std::make_shared<Wire>(context_.get_executor());
    wire->id = next_connection();
    wire->limits = limits;
    wires_[wire->id] = wire;
    ++open_;
    if (limits.hello.ns > 0) wire->hello_by = served_now() + limits.hello;
    look_after(*wire);
    return wire;
}

ConnId AsioLoop::connect_unix(const std::string &path, const Limits &limits) {
    const WirePtr wire = begin_connect(limits);
    asio::co_spawn(context_, connect_peer(wire, path), asio::detached);
    return wire->id;
}

Task AsioLoop::connect_peer(WirePtr wire, std::string path) {
    Timer timer(context_);
    while (wire->alive) {
        int fd = connect_unix_socket(path);
        if (fd >= 0) {
            wire->peer = peer_of(fd);
            if (!attach(wire, fd)) {
                lose(*wire, "no memory to wait for " + path);
                co_return;
            }
            arrive({.what = What::opened, .conn = wire->id, .peer = wire->peer});
            flush(wire);
            co_return;
        }
        if (errno != EAGAIN) {
            lose(*wire, fail_errno(Code::unreachable, "cannot connect to " + path, errno).text);
            co_return;
        }
        timer.expires_after(connect_pause);  // its queue is full; the hello deadline ends this
        co_await timer.async_wait(awaiting);
    }
}

// ---- bytes ----

Task AsioLoop::read_frames(WirePtr wire) {
    for (;;) {
        auto [error] = co_await wire->socket.async_wait(Descriptor::wait_read, awaiting);
        if (!wire->alive || wire->muted) co_return;
        if (error) {
            cannot_wait(*wire, error);
            co_return;
        }
        if (!receive(*wire)) co_return;
        if (is_crowded(*wire)) {
            wire->crowded = true;  // hand_out() continues with it
            wire->in_progress.stop();
            co_return;
        }
        if (wire->door >= 0 && wire->out.bytes() > limits::unread_bytes) {
            wire->stalled = true;  // flush() continues with it
            wire->in_progress.stop();
            co_return;
        }
    }
}

void AsioLoop::resume(const WirePtr &wire) {
    if (!wire->stalled || !wire->alive || wire->muted || wire->out.bytes() > limits::unread_bytes / 2) return;
    wire->stalled = false;
    start_reading(wire);
}

void AsioLoop::read_on(const WirePtr &wire) {
    if (!wire->crowded || !wire->alive || wire->muted) return;
    wire->crowded = false;
    start_reading(wire);
}

void AsioLoop::start_reading(const WirePtr &wire) {
    if (!wire->reader.idle()) wire->in_progress.start(served_now(), wire->limits.progress);
    look_after(*wire);
    asio::co_spawn(context_, read_frames(wire), asio::detached);
}

// False when the connection ended.
bool AsioLoop::receive(Wire &wire) {
    ssize_t n = ::recv(wire.socket.native_handle(), buffer_.data(), piece_of(wire), MSG_DONTWAIT);
    if (n < 0) {
        if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) return true;
        lose(wire, fail_errno(Code::broken, "connection failed", errno).text);
        return false;
    }
    if (n == 0) {
        lose(wire, wire.handshaking     ? "the peer closed the connection during the TLS handshake"
                   : wire.reader.idle() ? "the peer closed the connection"
                                        : "the peer closed the connection in the middle of a message");
        return false;
    }
    std::vector<Frame> frames;
    std::string_view bytes(buffer_.data(), static_cast<std::size_t>(n));
    std::string plain;
    Status status;
    try {
        if (wire.tls) {
            if (!decipher(wire, bytes, &plain)) return false;
            bytes = plain;
        }
        status = wire.receive(bytes, served_now(), &frames);
    } catch (const std::bad_alloc &) { status = fail(Code::limit, "no memory for the message"); }
    for (Frame &frame : frames) {
        arrive({.what = What::frame,
                .conn = wire.id,
                .door = wire.door,
                .peer = wire.peer,
                .header = frame.header,
                .payload = std::move(frame.payload)});
    }
    if (!status) {
        answer_nonsense(wire, status);
        lose(wire, status.text);
        return false;
    }
    look_after(wire);
    return charge(wire);
}

// One attempt: a DCS of another version gets the reason in the form that every version reads. Others do not matter.
void AsioLoop::answer_nonsense(Wire &wire, const Status &status) {
    if (wire.door < 0 || !wire.out.empty()) return;
    wire::ErrorReply reply{static_cast<std::int32_t>(status.code), status.text};
    auto words = wire::encode(wire::AnyMessage(reply), 0, wire.form.form());
    DCS_REQUIRE(words, "each form has error replies");
    std::string frame = std::move(*words);
    if (wire.tls && !wire.handshaking) {
        wire.tls->send(std::move(frame));
        frame = wire.tls->take_output();
    }
    [[maybe_unused]] ssize_t n =
        ::send(wire.socket.native_handle(), frame.data(), frame.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
}

Status Loop::send(ConnId conn, const wire::AnyMessage &message, std::uint64_t request) {
    auto frame = wire::encode(message, request, form_of(conn));
    if (!frame) return frame.status();
    send(conn, std::move(*frame));
    return Status::ok();
}

wire::Form AsioLoop::form_of(ConnId conn) const {
    const WirePtr wire = find(conn);
    return wire ? wire->form.form() : wire::opening_form;
}

void AsioLoop::send(ConnId conn, std::string frame) {
    WirePtr wire = find(conn);
    if (!wire || !wire->alive || wire->muted) return;
    if (wire->tls) {
        wire->tls->send(std::move(frame));
        frame = wire->tls->take_output();
    }
    wire->out.push(std::move(frame));
    if (wire->out.bytes() > send_early_bytes && !wire->writing) flush(wire);
    if (wire->alive && wire->out.bytes() > wire->limits.max_queued) flush(wire);
    if (!charge(*wire)) return;
    if (wire->out.bytes() + (wire->tls ? wire->tls->waiting() : 0) > wire->limits.max_queued) {
        lose(*wire, "the peer does not read its messages: its queue is full");
    } else if (!wire->dirty) {
        wire->dirty = true;
        dirty_.push_back(conn);
    }
}

void AsioLoop::flush_dirty() {
    std::vector<ConnId> dirty;
    dirty.swap(dirty_);
    for (ConnId conn : dirty) {
        WirePtr wire = find(conn);
        if (!wire) continue;
        wire->dirty = false;
        if (!wire->writing) flush(wire);
    }
}

void AsioLoop::flush(const WirePtr &wire) {
    if (!wire->alive || !wire->connected) return;
    WriteQueue::Sent sent = wire->flush(wire->socket.native_handle(), served_now());
    if (sent == WriteQueue::Sent::broken) {
        const int error = errno;
        if (wire->tls && !wire->muted) receive(*wire);  // why the peer hung up, if it said so
        lose(*wire, fail_errno(Code::broken, "connection failed", error).text);
    } else if (sent == WriteQueue::Sent::all && wire->muted) lose(*wire, "");
    if (!charge(*wire)) return;
    resume(wire);
    if (sent == WriteQueue::Sent::all) return;
    look_after(*wire);
    if (!wire->writing) {
        wire->writing = true;
        asio::co_spawn(context_, write_frames(wire), asio::detached);
    }
}

Task AsioLoop::write_frames(WirePtr wire) {
    while (wire->alive && !wire->out.empty()) {
        auto [error] = co_await wire->socket.async_wait(Descriptor::wait_write, awaiting);
        if (!wire->alive) break;
        if (error) {
            cannot_wait(*wire, error);
            break;
        }
        flush(wire);
    }
    wire->writing = false;
}

void AsioLoop::close(ConnId conn) {
    WirePtr wire = find(conn);
    if (!wire || wire->muted) return;
    wire->muted = true;
    if (!wire->alive) {
        forget(conn);
        return;
    }
    wire->hello_by = Instant::never();
    wire->in_progress.stop();
    if (wire->limits.progress.ns <= 0) wire->limits.progress = farewell;
    if (!wire->connected) {
        if (wire->out.empty()) return lose(*wire, "");
        wire->hello_by = served_now() + wire->limits.progress;
        return look_after(*wire);
    }
    flush(wire);
}

// The end of a socket. The wire itself stays known until its `closed` was handed out.
void AsioLoop::lose(Wire &wire, std::string why) {
    if (!wire.alive) return;
    wire.alive = false;
    boost::system::error_code ignored;
    wire.socket.close(ignored);
    wire.out.clear();
    uncharge(wire);
    if (wire.check_at != Instant::never()) checks_.erase({wire.check_at, wire.id});
    wire.check_at = Instant::never();
    DCS_REQUIRE(open_ > 0, "each socket that ends was counted");
    --open_;
    auto user = of_user_.find({wire.door, wire.peer.uid});
    DCS_REQUIRE(wire.tls || wire.door < 0 || user != of_user_.end(), "who came through a door was counted");
    if (wire.tls) stop_counting(wire);
    else if (wire.door >= 0 && --user->second.connections == 0) of_user_.erase(user);
    if (wire.muted) return forget(wire.id);  // the caller holds the wire
    const bool refused = !wire.told;
    arrive({.what = refused ? What::refused : What::closed,
            .conn = refused ? no_connection : wire.id,
            .door = wire.door,
            .peer = wire.peer,
            .certified = refused && wire.tls ? wire.tls->claimed() : TlsPeer{},
            .address = wire.address,
            .why = std::move(why),
            .about_time = refused && wire.tls && wire.tls->about_time()});
    if (!wire.told) forget(wire.id);
}

void AsioLoop::cannot_wait(Wire &wire, const boost::system::error_code &error) {
    lose(wire, "cannot wait for the peer: " + error.message());
}

WirePtr AsioLoop::find(ConnId conn) const {
    auto it = wires_.find(conn);
    return it == wires_.end() ? nullptr : it->second;
}

void AsioLoop::set_max_payload(ConnId conn, std::size_t max_payload) {
    if (WirePtr wire = find(conn)) wire->limits.max_payload = max_payload;
}

}  // namespace dcs::net
