#pragma once
// The resolver: a process beside a daemon that looks up names of hosts. The daemon itself may read no file that says
// what names mean: its rules are of files as they were at its start (daemon/privileges.h), and /etc/hosts and
// /etc/resolv.conf are replaced by new ones. The resolver reads no foreign byte: for each look-up it forks a process
// that may read what those files are now, and has no other rights, nor more than half a minute.
#include <memory>

#include "base/status.h"
#include "daemon/side_process.h"

namespace dcs {

// From now on net::look_up() of this process asks it. Before any thread starts, before privileges are given up, and
// before any foreign data is read. `daemon`: "the scheduler".
Status start_resolver(const std::string &daemon, std::unique_ptr<SideProcess> &resolver);

}  // namespace dcs
