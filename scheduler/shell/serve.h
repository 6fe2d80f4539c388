#pragma once
// The scheduler at work: doors open, turns driven by the event loop, until SIGTERM or SIGINT.
#include <memory>
#include <string>
#include <vector>

#include "daemon/peer_name.h"
#include "daemon/signals.h"
#include "net/loop.h"
#include "scheduler/record/rebuild.h"
#include "scheduler/shell/real_outside.h"
#include "scheduler/shell/tls_door.h"
#include "scheduler/turn/turn.h"

namespace dcs::shell {

struct ServeSettings {
    std::string directory;                  // where the sockets are made
    std::string hosts_file;                 // reread on SIGHUP
    std::string policy_file, limits_file;   // the same
    std::vector<core::HostConfig> hosts;    // their contents at the start
    core::Policy policy;
    turn::UserLimits limits;
    int ready_fd = -1;
    std::string tls_address;                // of the door for other hosts; empty: none
    std::string group;                      // whose members may call here; empty: the scheduler's own account and root
    std::string group_afar = "dcs";         // whose control programs may call from other hosts; empty: anybody's
    std::vector<std::string> masters;       // login names with root's rights over the pool: scheduler_master
};

class Service {
public:
    // What is given by reference outlives the Service.
    Service(ServeSettings settings, Signals &signals, Suspect &suspect, store::Store &store,
            std::unique_ptr<store::Disk> library_disk, net::Loop &loop, turn::Turn::Setup setup);
    // Makes user.sock and server.sock (mode 0600), and the door for other hosts if there is to be one.
    Status listen();
    // Says ready and serves. Returns when stopped, all committed and synced; otherwise why not.
    Status run();

private:
    void step();
    void handle(net::Arrival arrival);
    void opened(const net::Arrival &arrival);
    void opened_from_afar(const net::Arrival &arrival);
    void handle_signals();
    Status reread_settings();
    Status remove_host_line(const std::string &host);
    void storage_answered(storage::StorageThread::Done done);
    bool may_flush() const;
    void be_idle();
    Status stop();

    ServeSettings settings_;
    Signals &signals_;
    PeerNames names_;
    store::Store &store_;
    net::Loop &loop_;
    storage::StorageThread storage_;
    LibraryThread library_;
    Prober prober_;
    RealOutside outside_;
    turn::Turn turn_;
    net::Door user_door_ = -1, server_door_ = -1;
    std::unique_ptr<TlsDoor> tls_;
    bool stopping_ = false;
    Instant last_activity_{}, last_tidy_{};
    bool tidying_ = false;  // the commit in flight is nobody's wish
    Instant flush_not_before_{};
};

}  // namespace dcs::shell
