// dcs down: ends a private pool with all its grains.
#include <cstdio>
#include <unistd.h>

#include "commands/dcs/frame/call.h"
#include "commands/dcs/frame/pool_directory.h"
#include "start_daemon.h"
#include "stop_daemons.h"
#include "commands/dcs/frame/table.h"

namespace dcs::commands {
namespace {

constexpr int keeper_stop_s = 5, page_stop_s = 5, server_stop_s = 5, launcher_stop_s = 10, scheduler_stop_s = 10,
              backup_stop_s = 10;

struct Ended {
    int servers = 0, launchers = 0, schedulers = 0, backups = 0, running = 0, grains = 0, keepers = 0;
    std::string left;  // what would not end
};

int count_up(const std::vector<Daemon> &daemons) {
    int n = 0;
    for (const Daemon &daemon : daemons) n += daemon.up;
    return n;
}

// The keeper of held jobs, which submits. The page, which only looks. Servers next, so that no new grain starts; then
// launchers, which end their grains; then grains without a launcher; the backup, which hands over to the end; the
// scheduler last, so that it takes in what still comes.
Ended end_pool(const Pool &pool) {
    Ended ended;
    const std::vector<Daemon> keeper = {job_keeper(pool)};
    ended.keepers = count_up(keeper);
    for (const std::string &who : stop_daemons(keeper, keeper_stop_s)) ended.left += " " + who;
    for (const std::string &who : stop_daemons({pool.page()}, page_stop_s)) ended.left += " " + who;
    const std::vector<std::string> names = pool.server_names();
    std::vector<Daemon> servers, launchers;
    ended.running = running_grains(pool.path("servers"), names);
    for (const std::string &name : names) servers.push_back(pool.server(name));
    ended.servers = count_up(servers);
    for (const std::string &who : stop_daemons(servers, server_stop_s)) ended.left += " " + who;
    // Looked at only now: a server that was just starting has its launcher by now.
    for (const std::string &name : names) launchers.push_back(pool.launcher(name));
    ended.launchers = count_up(launchers);
    for (const std::string &who : stop_daemons(launchers, launcher_stop_s)) ended.left += " " + who;
    ended.grains = end_grains(pool, names);
    if (ended.grains < 0) ended.left += " some grains";
    const std::vector<Daemon> backup = {pool.backup()};
    ended.backups = count_up(backup);
    for (const std::string &who : stop_daemons(backup, backup_stop_s)) ended.left += " " + who;
    const std::vector<Daemon> scheduler = {pool.scheduler()};
    ended.schedulers = count_up(scheduler);
    for (const std::string &who : stop_daemons(scheduler, scheduler_stop_s)) ended.left += " " + who;
    return ended;
}

void print_result(const Call &call, const Pool &pool, const Ended &ended) {
    const bool nothing = ended.servers + ended.launchers + ended.schedulers + ended.backups + ended.grains == 0;
    if (call.format == Format::json) {
        JsonObject json;
        json.add("schema", "dcs.down/1").add("dir", pool.directory()).add("was_running", !nothing);
        json.add("servers", ended.servers)
            .add("scheduler", ended.schedulers)
            .add("backup", ended.backups)
            .add("grains_ended", ended.running)
            .add("grains_killed", ended.grains);
        std::printf("%s\n", json.text().c_str());
    } else if (call.format == Format::name) {
        std::printf("%s\n", pool.directory().c_str());
    } else if (nothing) {
        std::printf("Nothing was running in %s.\n", pool.directory().c_str());
        if (!pool.exists())
            std::printf("Daemons and grains of a pool whose directory was removed end by themselves within minutes.\n");
    } else {
        const char *others = ended.backups == 0      ? ended.schedulers > 0 ? "the scheduler and " : ""
                             : ended.schedulers == 0 ? "the backup and "
                                                     : "the scheduler, the backup and ";
        std::printf("Stopped %s%s in %s.\n", others, counted(ended.servers, "grain server").c_str(),
                    pool.directory().c_str());
        if (ended.running > 0)
            std::printf(
                "Ended %s: after the next `dcs up` they continue from their last checkpoints, or begin again without "
                "one.\n",
                counted(ended.running, "running grain").c_str());
        if (ended.grains > 0)
            std::printf("Killed %d %s of grains without a launcher.\n", ended.grains,
                        ended.grains == 1 ? "process" : "processes");
        if (ended.keepers > 0) std::printf("Jobs of sbatch and qsub that are held wait for the next `dcs up`.\n");
        for (const std::string &who : waiting_submits(pool))
            std::printf(
                "A background `dcs submit`, %s, waits ten minutes for the pool; later, run its command again.\n",
                who.c_str());
        std::printf("Sessions and results stay; `dcs up` continues from there.\n");
    }
}

int down(const Call &call) {
    const Pool pool(call.directory);
    const Status owned = become_owner(pool);
    const bool missing = owned.code == Code::not_found;
    if (!owned && !missing) return call.fail(failure_of("", owned, "name your own by --dir DIR or DCS_DIR"));
    if (pool.maker() == Pool::Maker::other)
        return call.fail(
            failure_of("", fail(Code::refused, not_by_up(pool)),
                       "stop them as they were started; `dcs status` shows what runs on this host, with its pids"));
    if (missing || ::access(pool.path("scheduler").c_str(), F_OK) != 0) {
        print_result(call, pool, {});
        return exits::ok;
    }
    const auto lock = take_work_lock(pool);
    if (!lock) return call.fail(failure_of("dcs down", lock.status()));
    const Ended ended = end_pool(pool);
    if (!ended.left.empty())
        return call.fail(
            failure_of("", fail(Code::internal, "could not stop:" + ended.left),
                       "run `dcs down` again; a process that waits for a disk ends when the disk answers"));
    print_result(call, pool, ended);
    return exits::ok;
}

}  // namespace

extern const Verb down_verb = {
    .noun = "",
    .name = "down",
    .summary = "stop a private pool with all its grains",
    .about = R"(Stops the private pool: grain servers, all grains (also those whose server is dead), backup, scheduler,
and the process that holds jobs of sbatch and qsub, which `dcs up` starts again.
Returns when all processes have ended. Sessions, checkpoints and results stay on disk; `dcs up` continues
from there, and grains start again from their last checkpoints.

Examples:
  dcs down
  dcs down --dir /scratch/p
)",
    .notes =
        R"(If nothing runs, it says so and succeeds. Daemons and grains whose directory was removed end by themselves
within minutes. It stops only pools that `dcs up` created. Root may stop the pool of another user; the command then
acts with that user's rights.
)",
    .run = down,
    .formats = false};

}  // namespace dcs::commands
