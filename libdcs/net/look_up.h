#pragma once
// Addresses of a host by its name, found elsewhere, so that no loop waits for a name server.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <sys/socket.h>

#include "base/fd.h"
#include "base/status.h"

namespace dcs::net {

struct Place {
    sockaddr_storage address{};
    socklen_t size = 0;
};
struct Found {
    std::vector<Place> places;
    std::string why;  // there are none
};

// Begins a look-up: by the process at the other end of look_up_by()'s socket, or by a thread of this one. The
// descriptor is readable when the answer is there or none will come; to close it gives the look-up up. `family` is
// AF_UNSPEC or AF_INET6. Never blocks; `limit`: too many are under way, ask again. Thread-safe.
Result<Fd> look_up(const std::string &name, std::uint16_t port, int family = AF_UNSPEC);
// What came, once. Does not wait.
Found read_found(int fd);

// From now on a process does it that is asked in packets, each with the end of a pipe to answer_look_up() at
// (resolver/resolver.h). Before any thread starts.
void look_up_by(int socket);
// In that process. Waits for name servers as long as the C library does.
void answer_look_up(std::string_view request, int fd);
inline constexpr std::size_t look_up_packet_max = 512;

}  // namespace dcs::net
