// dcs backup promote: the backup's copy of the store becomes the scheduler's.
#include <cstdio>

#include "commands/dcs/frame/call.h"
#include "commands/dcs/frame/json.h"
#include "commands/dcs/frame/pool_directory.h"
#include "commands/dcs/frame/service.h"
#include "start_daemon.h"
#include "stop_daemons.h"
#include "up_lock.h"

namespace dcs::commands {
namespace {

constexpr int stop_s = 20;

Failure with_hint(const Status &status, const char *hint) {
    Failure failure = failure_of("dcs backup promote", status);
    failure.hint = hint;
    return failure;
}

Status end_daemon(const Daemon &daemon) {
    if (stop_daemons({daemon}, stop_s).empty()) return Status::ok();
    return fail(Code::internal, "the " + daemon.role + " (pid " + std::to_string(daemon.pid) +
                                    ") could not be "
                                    "stopped");
}

Result<std::string> run_promotion(const Pool &pool) {
    const auto ran =
        run_to_end("dcs_backupd", {"--dir", pool.path("backup"), "--promote", pool.path("scheduler/state")});
    if (!ran) return ran.status();
    if (ran->exit_code != 0) return fail(ran->exit_code == 4 ? Code::refused : Code::io_error, ran->output);
    return ran->output;
}

int tell(const Call &call, const Pool &pool, const std::string &said, const std::string &next) {
    if (call.format == Format::json) {
        JsonObject json;
        json.add("schema", "dcs.backup.promote/1").add("dir", pool.directory()).add("text", said);
        std::printf("%s\n", json.text().c_str());
    } else if (call.format == Format::name) {
        std::printf("%s\n", pool.directory().c_str());
    } else {
        std::printf("%s\n%s\n", said.c_str(), next.c_str());
    }
    return exits::ok;
}

// On the backup's own host, of a pool of several. Whether the scheduler is dead only the operator knows; its daemons
// and those of this host are started by their services.
int promote_of_hosts(const Call &call, const Pool &pool) {
    for (const Daemon &daemon : {pool.scheduler(), pool.backup()})
        if (stays_up(daemon))
            return call.fail(with_hint(fail(Code::refused, "the " + daemon.role + " of " + pool.directory() +
                                                               " is running (pid " + std::to_string(daemon.pid) + ")"),
                                       "stop its service, then promote"));
    const auto said = run_promotion(pool);
    if (!said) return call.fail(with_hint(said.status(), "nothing was promoted"));
    const std::string scheduler = pool.path("scheduler");
    const bool service = pool.directory() == services_place && has_service("dcs-scheduler");
    const std::string files = "Next: put the pool's authority into " + scheduler + "/pki and its host table into ";
    return tell(call, pool, *said,
                service ? files + "/etc/dcs/hosts, then `systemctl start dcs-scheduler dcs-backupd`."
                        : files + scheduler + "/hosts, then start `dcs_scheduler --dir " + scheduler +
                              " --tls ADDRESS:PORT`, and the backup.");
}

int promote(const Call &call) {
    const Pool pool(call.directory);
    if (!pool.numbers()) return promote_of_hosts(call, pool);
    std::string said;
    {
        const auto lock = take_work_lock(pool);
        if (!lock) return call.fail(failure_of("dcs backup promote", lock.status()));
        const Daemon scheduler = pool.scheduler();
        if (stays_up(scheduler) && !call.arguments.has("yes"))
            return call.fail(
                with_hint(fail(Code::refused, "the scheduler is running (pid " + std::to_string(scheduler.pid) +
                                                  "): acknowledged data that the copy does not have "
                                                  "would be lost"),
                          "`dcs backup status` shows the copy's progress; --yes ends the scheduler"));
        if (Status s = end_daemon(scheduler); !s) return call.fail(with_hint(s, "run `dcs down`, then try again"));
        if (Status s = end_daemon(pool.backup()); !s) return call.fail(with_hint(s, "run `dcs down`, then try again"));
        const auto ran = run_promotion(pool);
        if (!ran) return call.fail(with_hint(ran.status(), "nothing was promoted; `dcs up` starts the pool unchanged"));
        said = *ran;
    }
    const auto up = run_to_end("dcs", {"up", "--dir", pool.directory()});
    if (!up || up->exit_code != 0)
        return call.fail(with_hint(fail(Code::internal, "the copy was promoted, but the pool did not start: " +
                                                            (up ? up->output : up.status().text)),
                                   "`dcs up`"));
    return tell(call, pool, said, "The pool serves again; sessions and grains continue.");
}

}  // namespace

extern const Verb backup_promote_verb = {
    .noun = "backup",
    .name = "promote",
    .summary = "start the scheduler from the backup's copy",
    .about = R"(Use this if the scheduler's disk is lost, or its state directory damaged or deleted. The copy that the
backup keeps (dcs up --mirror) becomes the state directory, in a new epoch, and the pool starts on it. Sessions
continue, control programs and grain servers reconnect by themselves, and an old scheduler that comes back is
refused. With --mirror sync no acknowledged data is lost. An existing state directory is kept beside the new one,
under another name.

Examples:
  dcs backup status          how far the copy is
  dcs backup promote
)",
    .options = {{"yes", 0, nullptr, {}, "promote even if the scheduler runs, and end it first"}},
    .notes = R"(In a pool of several hosts, run this on the backup's host while backup and scheduler are stopped. It
makes DIR/scheduler/state from the copy in DIR/backup. BACKUP.md says what else a scheduler there needs, and how
hosts find it.

Exit code 4: the scheduler runs, or there is no whole copy.
)",
    .run = promote};

}  // namespace dcs::commands
