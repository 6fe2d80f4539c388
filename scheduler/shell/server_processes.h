#pragma once
// The processes behind the links of grain servers on this host: a link that closes says nothing, since a server may
// come back by another; that its process has ended the kernel says.
#include <map>
#include <optional>

#include <sys/types.h>

#include "base/fd.h"
#include "base/ids.h"
#include "net/loop.h"

namespace dcs::shell {

class ServerProcesses {
public:
    explicit ServerProcesses(net::Loop &loop) : loop_(loop) {}
    ~ServerProcesses();
    // A server says who it is. Where the kernel gives no hold on its process nothing follows.
    void called_in(ConnId conn, pid_t pid);
    // A watched descriptor is readable: the latest link of the process that has ended; nothing if it is none of these.
    std::optional<ConnId> ended(int watch);

private:
    struct One {
        Fd fd;
        ConnId conn{};
    };
    void forget(std::map<pid_t, One>::iterator it);

    net::Loop &loop_;
    std::map<pid_t, One> by_pid_;
};

}  // namespace dcs::shell
