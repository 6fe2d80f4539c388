#pragma once
// The scheduler at work: doors open, turns driven by the event loop, until SIGTERM or SIGINT.
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "daemon/configuration.h"
#include "daemon/directory.h"
#include "daemon/service.h"
#include "daemon/side_process.h"
#include "net/loop.h"
#include "scheduler/record/rebuild.h"
#include "scheduler/shell/doors.h"
#include "scheduler/shell/import_threads.h"
#include "scheduler/shell/local_users.h"
#include "scheduler/shell/mirror_host.h"
#include "scheduler/shell/real_outside.h"
#include "scheduler/shell/scheduler_options.h"
#include "scheduler/shell/server_processes.h"
#include "scheduler/turn/turn.h"

namespace dcs::shell {

struct ServeSettings {
    std::string directory;                // where the sockets are made
    SettingsPaths files;                  // reread on SIGHUP
    std::vector<core::HostConfig> hosts;  // their contents at the start
    core::Policy policy;
    turn::UserLimits limits;
    std::vector<NamedLogin> logins;
    std::set<std::string> rules;
    bool look_up_logins = true;
    int ready_fd = -1;
    ServiceManager manager;
    RemovalWatch *removal = nullptr;
    std::unique_ptr<SideProcess> resolver;
    bool members_only = false;         // of the group that the keeper knows, when they call here
    std::vector<std::string> masters;  // login names with root's rights over the pool: scheduler_master
};

// The copy of the store that the backup may hold.
struct MirrorParts {
    turn::Mirror::Setup setup;
    AttachedFile &file;
    CommittedTurns &turns;
};

class Service {
public:
    // What is given by reference outlives the Service.
    Service(ServeSettings settings, Signals &signals, Suspect &suspect, store::Store &store,
            std::unique_ptr<store::Disk> library_disk, net::Loop &loop, keeper::KeeperClient &keeper,
            reader::Reader &reader, Doors doors, turn::Turn::Setup setup, MirrorParts mirror,
            Configuration &configuration);
    // Says ready, gives up the system calls that serving does not need (daemon/privileges.h), and serves. Returns when
    // stopped, all committed and synced; otherwise why not.
    Status run();

private:
    void step();
    void handle(net::Arrival arrival);
    void opened(const net::Arrival &arrival);
    void turn_away(ConnId conn, const Status &why);
    void opened_from_afar(const net::Arrival &arrival);
    void readable(int watch);
    void look_at(SideProcess &beside);
    void replaced(const std::string &why);  // the copy at the backup is the scheduler
    bool about_copy(const net::Arrival &arrival);
    void turn_out_copies();
    void commit_answered(const store::CommitResult &result);
    void handle_signals();
    Result<SettingsFiles> read_tables(bool move_grains);
    void take_tables(SettingsFiles tables);
    Status reread_settings(bool move_grains);
    Status remove_host_line(const std::string &host);
    void storage_answered(storage::StorageThread::Done done);
    bool may_flush() const;
    void be_idle();
    Status stop();

    ServeSettings settings_;
    Configuration &configuration_;
    Signals &signals_;
    keeper::KeeperClient &keeper_;
    LocalUsers users_;
    UnknownLogins logins_;
    store::Store &store_;
    net::Loop &loop_;
    storage::StorageThread storage_;
    LibraryThread library_;
    ImportThreads imports_;
    Prober prober_;
    RealOutside outside_;
    turn::Turn turn_;
    MirrorHost mirror_;
    std::optional<store::CommitResult> held_;  // an answer that waits for the copy at the backup
    ServerProcesses server_processes_;
    std::set<ConnId> own_peers_;  // processes of our own account, at the grain servers' door
    struct Afar {
        core::Certified certified;
        bool copies = false;
    };
    std::map<ConnId, Afar> backups_;  // on other hosts; copies: this connection is for the copy of the store
    Doors doors_;
    bool stopping_ = false;
    Status ended_;  // why it stops, if not by request
    Instant last_activity_{}, last_tidy_{};
    bool tidying_ = false;  // no caller waits for the commit in flight
    Instant flush_not_before_{};
};

}  // namespace dcs::shell
