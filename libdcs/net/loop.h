#pragma once
// The event loop of a daemon: sockets, deadlines and a few descriptors, as a queue of Arrivals.
// Nothing of Asio shows here. One thread; only wake() may be called from another.
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/instant.h"
#include "base/limits.h"
#include "base/status.h"
#include "net/tls.h"
#include "wire/message.h"

namespace dcs::net {

using Door = int;  // number of a listening socket

struct Peer {
    std::uint32_t uid = 0, gid = 0;
    std::int32_t pid = 0;
};  // of a Unix socket

enum class What : std::uint8_t {
    opened,   // a peer came in through `door`, or our connect() succeeded (door < 0)
    frame,    // one whole frame: header checked against the connection's limit, payload as it came
    closed,   // by the peer, by an error, by a deadline; `why` says. Nothing follows on this ConnId
    ready,    // a watched descriptor is readable (`watch`)
    woken,    // wake() was called
    refused,  // a peer at a TLS door did not get in: `address`, `why`; there is no ConnId
    held_up   // once: descriptors have become few, so peers wait in the doors' queues until others leave; `why`
};
struct Arrival {
    What what = What::woken;
    ConnId conn{};
    Door door = -1;
    int watch = -1;
    Peer peer;            // of a Unix socket
    TlsPeer certified;    // opened: of TLS; refused: only role and name, which any peer can claim
    std::string address;  // of a TLS door: where the peer comes from
    wire::FrameHeader header;
    std::string payload;
    std::string why;
    bool about_time = false;  // refused: for a certificate's time of validity, perhaps; a clock may be wrong
};

// A Duration of 0 means no such deadline. To move is to bring or take 4 KiB, or the rest if that is less.
// Deadlines stand still while no peer is served: the caller is away from wait() for more than a second, or
// the process or machine is stopped.
struct Limits {
    std::size_t max_payload = 0;                          // frames above it are refused and the connection closed
    Duration hello = seconds(10);                         // connected, and first whole frame there, within
    Duration progress = seconds(30);                      // a frame begun, or output queued, must move within
    std::size_t max_queued = 256u << 20;                  // bytes queued towards a peer; above it, it is cut off
    std::size_t per_user = limits::connections_per_user;  // of one user through one door
    // TLS doors: instead of max_payload for a peer that showed no certificate. `hello` is the time for the handshake,
    // and then once more for the first frame.
    std::size_t stranger_payload = limits::hello_frame_bytes;
    bool of_pool = false;  // a door of the pool's daemons: takes half of the descriptors that other doors leave
};

class Loop {
public:
    static std::unique_ptr<Loop> create();  // null: out of descriptors
    virtual ~Loop() = default;

    // Unix stream socket `directory/name` (any length of directory), mode e.g. 0600, or 0660 for a group; a left-over
    // socket is replaced: the caller holds the lock of the directory.
    virtual Result<Door> listen_unix(const std::string &directory, const std::string &name, unsigned mode,
                                     const Limits &limits, std::optional<std::uint32_t> group = {}) = 0;
    // Starts connecting; Arrival opened or closed follows.
    virtual ConnId connect_unix(const std::string &path, const Limits &limits) = 0;
    // A TLS 1.3 door at HOST:PORT. Arrival opened comes when the handshake is over and the peer has been checked.
    virtual Result<Door> listen_tls(const std::string &address, const Limits &limits, TlsContextPtr context) = 0;
    virtual std::uint16_t port_of(Door door) const = 0;
    // For connections to come: a renewed certificate.
    virtual void set_tls(Door door, TlsContextPtr context) = 0;
    // As connect_unix, to HOST:PORT; opened when the handshake is over and the peer has been checked. What is sent
    // before that and then close()d is lost.
    virtual ConnId connect_tls(const std::string &address, const Limits &limits, TlsContextPtr context) = 0;
    // Raises or lowers the frame limit of one connection (a peer that said who it is gets more).
    virtual void set_max_payload(ConnId conn, std::size_t max_payload) = 0;
    // Queues a message in the form that the peer reads; it leaves during the next wait(). Unknown or closed ConnId:
    // ignored. It fails, and nothing is queued, if that form cannot say it.
    Status send(ConnId conn, const wire::AnyMessage &message, std::uint64_t request = 0);
    // Queues one whole frame.
    virtual void send(ConnId conn, std::string frame) = 0;
    // In which form the peer is written to, as far as it is known.
    virtual wire::Form form_of(ConnId conn) const = 0;
    // Closes after what is queued went out (or its progress deadline passed). No Arrival follows.
    virtual void close(ConnId conn) = 0;
    // Arrival ready whenever fd (pipe, socket, signalfd, pidfd) is readable or at its end; the caller
    // reads it, keeps owning it, and calls unwatch before closing it.
    virtual void watch(int fd) = 0;
    virtual void unwatch(int fd) = 0;
    // Waits until something arrived or the deadline (boot_clock) passed; at most `max` arrivals, in order.
    virtual std::vector<Arrival> wait(Instant deadline, std::size_t max) = 0;
    virtual void wake() = 0;
};

}  // namespace dcs::net
