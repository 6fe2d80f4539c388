#pragma once
// The running passive backup: its listening sockets, its connection to the scheduler, turns driven by the event loop.
#include <map>
#include <memory>
#include <string>

#include "backupd/shell/mirror_link.h"
#include "backupd/turn/turn.h"
#include "daemon/configuration.h"
#include "daemon/directory.h"
#include "daemon/service.h"
#include "daemon/side_process.h"
#include "net/loop.h"
#include "net/pool_link.h"
#include "storage/storage_thread.h"

namespace dcs::backup {

struct ServeSettings {
    std::string directory;  // contains backup.sock
    int ready_fd = -1;
    ServiceManager manager;
    RemovalWatch removal;
    std::unique_ptr<SideProcess> resolver;  // unless the scheduler is on this host
};

struct Doors {
    net::Door tls = -1;  // for grain servers of other hosts; -1: none
};

// Opens backup.sock, mode 0600, and at `tls_address`, unless that is empty, the port for other hosts. No data is read
// before the loop runs.
Result<Doors> open_doors(net::Loop &loop, const std::string &directory, const std::string &tls_address,
                         const net::PoolLink &link);

class Service final : private Outside {
public:
    // All reference arguments outlive the Service.
    Service(ServeSettings settings, Signals &signals, store::Store &store, net::Loop &loop, net::PoolLink &link,
            Doors doors, State state, const MirrorLink &mirror, Configuration &configuration);
    // Signals readiness, drops the system calls that serving does not need, and serves until TERM or INT; then all is
    // committed and synced.
    Status run();

private:
    Instant now() override;
    double jitter() override;
    void send(ConnId conn, const wire::AnyMessage &message, std::uint64_t request) override;
    void close(ConnId conn) override;
    Result<ConnId> connect() override;
    void save(const Members &members) override;
    void renewed(const wire::Renewed &answer) override;
    void log(Level level, const std::string &line) override;
    void start_commit(std::vector<store::TreeUpdate> updates, store::Room room) override;
    void fatal(const std::string &why) override;

    void step();
    void handle(net::Arrival arrival);
    bool about_mirror(const net::Arrival &arrival);
    bool may_come_in(const net::Arrival &opened);
    void readable(int watch);
    void handle_signals();
    void reread_configuration();
    void keep_certificate();
    bool may_flush() const;
    void storage_answered(const storage::StorageThread::Done &done);
    Status stop();

    ServeSettings settings_;
    Signals &signals_;
    store::Store &store_;
    net::Loop &loop_;
    net::PoolLink &link_;
    const Doors doors_;
    std::map<ConnId, Guest> certified_;  // peers at the TLS port
    storage::StorageThread storage_;
    Turn turn_;
    const MirrorLink &mirror_;
    Configuration &configuration_;
    bool stopping_ = false;
    Instant last_activity_{}, flush_not_before_{};
};

}  // namespace dcs::backup
