#pragma once
// TCP sockets. Descriptors that come out of here are non-blocking, close-on-exec and belong to the caller; a peer that
// has gone without a word is noticed within a minute or two.
#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"

namespace dcs::net {

struct TcpAddress {
    std::string host;  // a name, an IPv4 address, or an IPv6 address without its brackets
    std::uint16_t port = 0;
};
// NAME:PORT, ADDRESS:PORT or [IPV6]:PORT. Port 0 only where it is listened on: the kernel chooses.
Result<TcpAddress> parse_tcp_address(const std::string &text);
// Where a peer may be found: one address, or several with commas between, to be tried in this order.
constexpr std::size_t addresses_most = 4;
Result<std::vector<std::string>> parse_tcp_addresses(const std::string &text);
std::string to_text(const TcpAddress &address);
// An option --scheduler: such addresses, or with a slash a socket of this host.
Status check_scheduler_option(const std::string &text);

// Name look-ups may block: at the start of a daemon only.
Result<int> listen_tcp_socket(const TcpAddress &address);
std::uint16_t port_of(int listener);

// Begins to connect to sockaddr bytes; -1 and errno if it cannot even begin.
int begin_connect_tcp(const void *address, std::size_t size);
// What became of it: 0 or an errno.
int connect_error(int fd);
// Who is at the other end, without the port: "192.0.2.7".
std::string address_of_peer(int fd);
// The network that its address is counted by: an IPv4 address is one, of an IPv6 address the first 64 bits, as who has
// one has them all. An IPv4 address in IPv6's clothes is that IPv4 address.
std::string network_of_peer(int fd);
std::string network_of(const void *address, std::size_t size);  // of sockaddr bytes
// Of an accepted or connected socket.
void set_tcp_options(int fd);

}  // namespace dcs::net
