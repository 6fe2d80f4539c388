#pragma once
// Which user of this host is at the other end of a connection, by the kernel's word.
#include <cstdint>

#include "base/status.h"

namespace dcs::commands::page {

// Of a Unix socket, or of TCP over 127.0.0.1. not_found: its end is not a socket of this host that is open now.
Result<std::uint32_t> uid_of_peer(int socket);

}  // namespace dcs::commands::page
