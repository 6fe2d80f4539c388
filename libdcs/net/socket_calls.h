#pragma once
// Unix and TCP sockets. Descriptors that come out of here are non-blocking, close-on-exec and belong to the caller.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "net/loop.h"

namespace dcs::net {

// A listening Unix socket `directory/name`, for directories of any length (sun_path holds 107 bytes), with `mode` and,
// if one is given, `group`. It gets that name only when it is ready, in place of a left-over socket: those who connect
// meanwhile reach the old or the new one, never no file at all.
Result<int> listen_unix_socket(const std::string &directory, const std::string &name, unsigned mode,
                               std::optional<std::uint32_t> group = {});

// Connects a socket of the caller's that does not block: 0 or an errno. While the listener's queue is full it waits
// for a place there; EAGAIN: for so long.
int connect_to_path(int socket, const std::string &path, Duration wait);

// A connected descriptor, or -1 and errno; EAGAIN: the listener's queue was full for 50 ms, try again.
int connect_unix_socket(const std::string &path);

// Why to accept no connection now; empty: one may come. It would get the lowest free number, and the highest ones are for
// the store and all else that this process opens.
std::string few_descriptors(int listener, bool of_pool);
// A connection from a listening descriptor, or -1 and errno.
int accept_socket(int listener);

// Who is at the other end, as the kernel recorded it when the connection was made.
Peer peer_of(int fd);

struct TcpAddress {
    std::string host;  // a name, an IPv4 address, or an IPv6 address without its brackets
    std::uint16_t port = 0;
};
// NAME:PORT, ADDRESS:PORT or [IPV6]:PORT. Port 0 only where it is listened on: the kernel chooses.
Result<TcpAddress> parse_tcp_address(const std::string &text);
// The same, and without a port, which is 0 then; none may be said to be 0.
std::optional<TcpAddress> parse_address(std::string_view text);
// Where a peer may be found: one address, or several with commas between, to be tried in this order.
constexpr std::size_t addresses_most = 4;
Result<std::vector<std::string>> parse_tcp_addresses(const std::string &text);
std::string to_text(const TcpAddress &address);
// An option --scheduler: such addresses, or with a slash a socket of this host.
Status check_scheduler_option(const std::string &text);

// Name look-ups may block: at the start of a daemon only.
Result<int> listen_tcp_socket(const TcpAddress &address);
std::uint16_t port_of(int listener);

// Until when to try one of `left` addresses, all of which have until `end`: its share of the time that is left.
Instant share_of_time(Instant end, Instant now, std::size_t left);
// Begins to connect to sockaddr bytes; -1 and errno if it cannot even begin.
int begin_connect_tcp(const void *address, std::size_t size);
// What became of it: 0 or an errno.
int connect_error(int fd);
// Who is at the other end, without the port: "192.0.2.7".
std::string address_of_peer(int fd);
std::string ip_text(const void *address, std::size_t size);  // of sockaddr bytes
// The network that its address is counted by: an IPv4 address is one, of an IPv6 address the first 64 bits, as who has
// one has them all. An IPv4 address in IPv6's clothes is that IPv4 address.
std::string network_of_peer(int fd);
std::string network_of(const void *address, std::size_t size);  // of sockaddr bytes
// Of an accepted or connected socket: a peer that has gone without a word is noticed within a minute or two.
void set_tcp_options(int fd);

}  // namespace dcs::net
