#pragma once
// One pool in virtual time: scheduler, hosts with their servers, control programs, connections, faults,
// checkers. Everything that happens is an event of one queue.
#include <memory>
#include <set>

#include "sim/checkers/watch.h"
#include "sim/faults.h"
#include "sim/backup_node.h"
#include "sim/mem_disk.h"
#include "sim/server_node.h"

namespace dcs::sim {

class SimMedium final : public Medium {
public:
    store::Disk &disk() override { return disk_; }
    test::SimDisk *sim() override { return &disk_; }

private:
    test::SimDisk disk_;
};

class World final : public Handler {
public:
    explicit World(const Plan &plan);
    // Until all control programs are done and nothing is left on the hosts, or something is wrong.
    void run();
    std::string summary() const;

    const Plan plan;
    Clock clock;
    std::unique_ptr<Medium> medium;
    SchedulerNode scheduler;
    Links links;
    std::unique_ptr<BackupNode> backup;   // null: there is none
    std::unique_ptr<Links> backup_links;  // of the servers, with the same sites
    Watch watch;
    std::vector<std::unique_ptr<Host>> hosts;
    std::vector<std::unique_ptr<ServerNode>> servers;
    std::vector<std::unique_ptr<ControlNode>> controls;
    // The host table, as it stands now.
    std::set<int> unlisted;
    std::map<int, std::int32_t> other_slots;
    std::int32_t slots_of(int host) const;

private:
    enum What : std::uint32_t { begin_server, begin_control, heal, look };
    void happen(std::uint32_t what, std::uint64_t arg) override;
    std::vector<core::HostConfig> host_table();
    bool reachable(const std::string &name) const;
    void add_backup();
    void check_backup();
    void add_hosts();
    void add_controls();
    void begin();
    void look_around();
    std::string first_unfinished() const;
    void look_at_hosts();
    bool all_done() const;
    void final_checks();

    Faults faults_;
    bool finished_ = false;
    Instant healed_at_ = Instant::never(), done_at_ = Instant::never();
};

}  // namespace dcs::sim
