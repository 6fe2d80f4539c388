#pragma once
namespace dcs::keeper {
// A raw socket for echo requests (ICMP) and their answers, the caller's. -1 and errno: not here, or not for us.
int raw_echo_socket(bool v6);
}  // namespace dcs::keeper
