#include "scheduler/keeper/echo_socket.h"

#include <netinet/in.h>
#include <sys/socket.h>

namespace dcs::keeper {

int raw_echo_socket(bool v6) {
    return ::socket(v6 ? AF_INET6 : AF_INET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC,
                    v6 ? int{IPPROTO_ICMPV6} : int{IPPROTO_ICMP});
}

}  // namespace dcs::keeper
