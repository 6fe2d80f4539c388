#pragma once
// Packets of a Unix socket (SOCK_SEQPACKET) that bring a descriptor along.
#include <optional>
#include <string>
#include <string_view>

#include "base/fd.h"

namespace dcs {

// With `fd` if it is one. False with errno.
bool send_packet(int socket, std::string_view packet, int fd = -1, int flags = 0) noexcept;
// The next one, of which `max` bytes are taken, and its descriptor if it has one. Nothing, with errno, if there is
// none; 0: the other side is gone.
std::optional<std::string> receive_packet(int socket, std::size_t max, Fd &fd);

}  // namespace dcs
