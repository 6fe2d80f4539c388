#include "sim/checkers/backup_check.h"

namespace dcs::sim {

void BackupCheck::acknowledged(const backup::State &backup, const server::State &server) {
    if (server.backup_store != backup.store) return;  // of one that was lost
    const backup::HostReports *host = backup.host(server.host);
    const std::uint64_t last = host ? host->last : 0;
    if (server.backup_number > last)
        clock_.complain("backup", server.host + " was told that report " + std::to_string(server.backup_number) +
                                      " is held, the last one is " + std::to_string(last));
}

void BackupCheck::forgotten(const backup::State &backup, const core::State &scheduler) {
    for (const auto &[name, host] : backup.hosts) {
        if (host.forgotten == 0) continue;
        const auto it = scheduler.handed_over.find(name);
        const bool has = it != scheduler.handed_over.end() && it->second.store == backup.store &&
                         it->second.number >= host.forgotten;
        if (!has)
            return clock_.complain("backup", "report " + std::to_string(host.forgotten) + " of " + name +
                                                 " is forgotten, and the scheduler does not have it");
    }
}

void BackupCheck::believed(const core::State &scheduler, const server::State &server) {
    if (server.backup_number == 0) return;
    const core::HandedOver promised{server.backup_store, server.backup_number};
    const auto it = scheduler.handed_over.find(server.host);
    if (it != scheduler.handed_over.end() && it->second.covers(promised)) return;
    const core::Host *host = scheduler.host(scheduler.host_id(server.host));
    if (host && host->given_up.covers(promised)) return;
    clock_.complain("backup", server.host + " is believed, though its report " + std::to_string(promised.number) +
                                  " is still with the backup");
}

}  // namespace dcs::sim
