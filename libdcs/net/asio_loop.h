#pragma once
// Inside of net::Loop, for asio_loop.cc, sockets.cc and tls_wires.cc only: the one header that shows Asio.
//
// Asio waits for readiness; the calls that move bytes are made here, without blocking. So a
// connection that is silent owns no buffer, and one receive buffer serves them all.
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/basic_stream_descriptor.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/limits.h"
#include "net/connection.h"
#include "net/loop.h"
#include "net/stranger_table.h"
#include "net/socket_calls.h"
#include "net/tls.h"
#include "base/instant.h"

namespace dcs::net {

// Descriptors that wait() looks after besides its sockets: those of watch(), the wake-up and the alarm
// clock. They sit in an epoll set of their own, so that the callers' descriptors keep their flags.
class WatchSet {
public:
    WatchSet();
    ~WatchSet();
    WatchSet(const WatchSet &) = delete;
    WatchSet &operator=(const WatchSet &) = delete;

    bool good() const { return epoll_ >= 0 && wake_ >= 0 && alarm_ >= 0; }
    int fd() const { return epoll_; }  // readable when take() has something

    void add(int fd);
    void remove(int fd);
    // Reports each readable descriptor once; after rearm() it may be reported again.
    std::vector<int> take(bool *woken);
    void rearm(int fd);

    void wake();                  // from any thread
    void alarm_at(Instant when);  // of boot_clock: makes fd() readable then, through suspends too

private:
    int epoll_ = -1, wake_ = -1, alarm_ = -1;
    Instant armed_ = Instant::never();
    std::set<int> watched_;
};

namespace asio = boost::asio;
using Executor = asio::io_context::executor_type;
using Descriptor = asio::posix::basic_stream_descriptor<Executor>;
using Timer =
    asio::basic_waitable_timer<std::chrono::steady_clock, asio::wait_traits<std::chrono::steady_clock>, Executor>;
using Task = asio::awaitable<void, Executor>;
inline constexpr asio::as_tuple_t<asio::use_awaitable_t<Executor>> awaiting;

struct Wire : Connection {
    explicit Wire(Executor executor) : socket(executor) {}
    Descriptor socket;
    // TLS only
    std::unique_ptr<TlsSession> tls;
    std::string address, network;          // of a door: whence it came
    bool stranger = false;                 // of a door: counted by network, not by certificate
    std::string counted_as;                // of a door: the name in its certificate
    Instant shaken_by = Instant::never();  // when its handshake has to be over
    std::string charged_to;  // of a door: who answers for what is held for it; empty: its limits alone bound that
    std::size_t shaken = 0;  // bytes that came before its handshake was over
    bool told = true;        // of it as opened
};
using WirePtr = std::shared_ptr<Wire>;
struct OfUser {
    std::size_t connections = 0, bytes = 0;
};  // bytes: held for the user

struct Listener {
    explicit Listener(Executor executor) : socket(executor) {}
    Descriptor socket;
    Door door = -1;
    Limits limits;
    TlsContextPtr tls;
};
using ListenerPtr = std::shared_ptr<Listener>;

std::string payer_of(const TlsPeer &peer);  // Wire::charged_to, once a certificate was shown
ConnId next_connection();                   // unique among all loops of the process (sockets.cc)

class AsioLoop final : public Loop {
public:
    AsioLoop() : context_(1), watch_fd_(context_.get_executor()), buffer_(256 * 1024) {}
    ~AsioLoop() override;
    bool start();

    Result<Door> listen_unix(const std::string &directory, const std::string &name, unsigned mode, const Limits &limits,
                             std::optional<std::uint32_t> group) override;
    ConnId connect_unix(const std::string &path, const Limits &limits) override;
    Result<Door> listen_tls(const std::string &address, const Limits &limits, TlsContextPtr context) override;
    std::uint16_t port_of(Door door) const override;
    void set_tls(Door door, TlsContextPtr context) override;
    ConnId connect_tls(const std::string &address, const Limits &limits, TlsContextPtr context) override;
    void set_max_payload(ConnId conn, std::size_t max_payload) override;
    using Loop::send;
    void send(ConnId conn, std::string frame) override;
    wire::Form form_of(ConnId conn) const override;
    void close(ConnId conn) override;
    void watch(int fd) override { watches_.add(fd); }
    void unwatch(int fd) override;
    std::vector<Arrival> wait(Instant deadline, std::size_t max) override;
    void wake() override { watches_.wake(); }

private:
    Task watch_descriptors();
    Task accept_peers(ListenerPtr listener);
    Task connect_peer(WirePtr wire, std::string path);
    Task read_frames(WirePtr wire);
    Task write_frames(WirePtr wire);

    // sockets.cc
    Result<Door> listen(int fd, const std::string &where, const Limits &limits, TlsContextPtr context);
    WirePtr begin_connect(const Limits &limits);
    bool accept_some(Listener &listener);
    void let_in(Listener &listener, int fd);
    bool attach(const WirePtr &wire, int fd);
    bool receive(Wire &wire);
    void flush(const WirePtr &wire);
    void flush_dirty();
    void lose(Wire &wire, std::string why);
    void cannot_wait(Wire &wire, const boost::system::error_code &error);
    bool has_room(const Listener &listener, const Peer &peer) const;
    void resume(const WirePtr &wire);
    void read_on(const WirePtr &wire);
    void start_reading(const WirePtr &wire);
    void answer_nonsense(Wire &wire, const Status &status);
    WirePtr find(ConnId conn) const;
    void forget(ConnId conn) { wires_.erase(conn); }

    // what is held
    bool charge(Wire &wire);
    OfUser &payer_for(const Wire &wire);
    std::size_t piece_of(const Wire &wire);
    void uncharge(Wire &wire);
    void charge_to(Wire &wire, std::string who);

    // tls_wires.cc
    Task connect_tls_peer(WirePtr wire, TcpAddress to);
    void let_stranger_in(Listener &listener, int fd);
    bool begin_handshake(const WirePtr &wire, int fd);
    bool decipher(Wire &wire, std::string_view bytes, std::string *plain);
    bool handshake_is_over(Wire &wire);
    void turn_away(Wire &wire, const std::string &why);
    bool make_room_for(const WirePtr &wire);
    void stop_counting(Wire &wire);

    // asio_loop.cc
    Instant served_now() const;
    void look_after(Wire &wire);
    void cut_off_overdue(Instant now);
    void give_last_chance(const WirePtr &wire);
    Instant next_check() const;
    void run_ready(std::size_t max);
    void arrive(Arrival arrival);
    bool is_crowded(const Wire &wire);
    std::size_t share_of(ConnId conn);
    std::vector<Arrival> hand_out(std::size_t max);
    struct Lane {
        std::deque<Arrival> waiting;
        std::size_t counted = 0;  // of these, no more than its share
    };
    void take_out(Lane &lane, std::vector<Arrival> &out);
    void count_less(Lane &lane);

    asio::io_context context_;
    WatchSet watches_;
    Descriptor watch_fd_;
    std::vector<char> buffer_;  // what one recv brings, of any connection
    std::vector<ListenerPtr> listeners_;
    std::map<ConnId, WirePtr> wires_;
    std::map<std::pair<Door, std::uint32_t>, OfUser> of_user_;
    StrangerTable strangers_{{limits::strangers, limits::strangers_of_network}};  // at TLS doors
    std::map<std::string, std::size_t> of_certificate_;                           // by key, or name
    std::map<std::string, OfUser> held_;                                          // at TLS doors, by Wire::charged_to
    std::size_t open_ = 0;                                                        // sockets of wires
    bool held_up_ = false;                                                        // an Arrival said so
    std::set<std::pair<Instant, ConnId>> checks_;                                 // in time of served_now()
    Duration away_;                                                               // how long no peer was served, in all
    Instant left_;                                                                // when wait() was last left
    std::vector<ConnId> dirty_;
    // What came, of each connection, and of no_connection what belongs to none; and whose turn it is.
    std::map<ConnId, Lane> inbox_;
    std::deque<ConnId> next_;
    std::size_t inbox_bytes_ = 0;
    std::size_t inbox_count_ = 0;  // of each connection no more than it may have in there
    bool woken_ = false;           // an Arrival in inbox_ says so
    std::vector<int> to_rearm_;    // watched descriptors that were reported to the caller
};

}  // namespace dcs::net
