#pragma once
// One attempt to find out whether an address answers, as a socket to be polled.
#include <cstdint>
#include <functional>
#include <optional>

#include <sys/socket.h>

namespace dcs::shell {

enum class Seen : std::uint8_t { nothing_yet, alive, silent };

struct ProbeSocket {
    Seen seen = Seen::nothing_yet;  // at once
    int fd = -1;                    // -1: settled
    short events = 0;               // to poll for
    bool echo = false;              // ICMP; else TCP
    bool with_header = false;       // the IP header comes with the reply
    bool v6 = false;
    std::uint64_t cookie = 0;
};

// Starts to connect. May settle at once. Out of descriptors or memory: unknown,
// so the host may be alive.
ProbeSocket connect_probe(const sockaddr_storage &to, std::uint16_t port);
// Sends an ICMP echo request likewise. Nothing, if this process may not.
// `raw_socket` opens one where only root may, and answers -1 if it cannot be had.
std::optional<ProbeSocket> echo_probe(const sockaddr_storage &to, std::uint64_t cookie,
                                      const std::function<int(bool v6)> &raw_socket);
// What poll's events say.
Seen look_at(const ProbeSocket &probe);

}  // namespace dcs::shell
