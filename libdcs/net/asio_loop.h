#pragma once
// Inside of net::Loop, for loop.cc and sockets.cc only: the one header that shows Asio.
//
// Asio waits for readiness; the calls that move bytes are made here, without blocking. So a
// connection that is silent owns no buffer, and one receive buffer serves them all.

#include <chrono>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/basic_stream_descriptor.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "net/connection.h"
#include "net/loop.h"
#include "net/watch_set.h"

namespace dcs::net {

namespace asio = boost::asio;
using Executor = asio::io_context::executor_type;
using Descriptor = asio::posix::basic_stream_descriptor<Executor>;
using Timer = asio::basic_waitable_timer<std::chrono::steady_clock,
                                         asio::wait_traits<std::chrono::steady_clock>, Executor>;
using Task = asio::awaitable<void, Executor>;
inline constexpr asio::as_tuple_t<asio::use_awaitable_t<Executor>> awaiting;

struct Wire : Connection {
    explicit Wire(Executor executor) : socket(executor) {}
    Descriptor socket;
};
using WirePtr = std::shared_ptr<Wire>;

struct Listener {
    explicit Listener(Executor executor) : socket(executor) {}
    Descriptor socket;
    Door door = -1;
    Limits limits;
};
using ListenerPtr = std::shared_ptr<Listener>;

class AsioLoop final : public Loop {
public:
    AsioLoop() : context_(1), watch_fd_(context_.get_executor()), buffer_(256 * 1024) {}
    ~AsioLoop() override;
    bool start();

    Result<Door> listen_unix(const std::string &directory, const std::string &name, unsigned mode,
                             const Limits &limits) override;
    ConnId connect_unix(const std::string &path, const Limits &limits) override;
    void set_max_payload(ConnId conn, std::size_t max_payload) override;
    void send(ConnId conn, std::string frame) override;
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
    bool accept_some(Listener &listener);
    void let_in(Listener &listener, int fd);
    bool attach(const WirePtr &wire, int fd);
    bool receive(Wire &wire);
    void flush(const WirePtr &wire);
    void flush_dirty();
    void lose(Wire &wire, std::string why);
    void answer_nonsense(Wire &wire, const Status &status);
    WirePtr find(ConnId conn) const;
    void forget(ConnId conn) { wires_.erase(conn); }

    // loop.cc
    Instant served_now() const;
    void look_after(Wire &wire);
    void cut_off_overdue(Instant now);
    void give_last_chance(const WirePtr &wire);
    Instant next_check() const;
    void run_ready(std::size_t max);
    void arrive(Arrival arrival);
    std::vector<Arrival> hand_out(std::size_t max);

    asio::io_context context_;
    WatchSet watches_;
    Descriptor watch_fd_;
    std::vector<char> buffer_;  // what one recv brings, of any connection
    std::vector<ListenerPtr> listeners_;
    std::map<ConnId, WirePtr> wires_;
    std::map<std::pair<Door, std::uint32_t>, std::size_t> of_user_;
    std::size_t open_ = 0;  // sockets of wires
    std::set<std::pair<Instant, ConnId>> checks_;  // in time of served_now()
    Duration away_;                                // how long nobody was served, in all
    Instant left_;                                 // when wait() was last left
    std::vector<ConnId> dirty_;
    std::deque<Arrival> inbox_;
    std::size_t inbox_bytes_ = 0;
    bool woken_ = false;       // an Arrival in inbox_ says so
    std::vector<int> to_rearm_;  // watched descriptors that the caller was told about
};

}  // namespace dcs::net
