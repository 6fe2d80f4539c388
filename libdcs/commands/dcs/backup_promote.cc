// dcs backup promote: the backup's copy of the store becomes the scheduler's.
#include <cstdio>

#include "call.h"
#include "json.h"
#include "pool.h"
#include "start_daemon.h"
#include "stop_daemons.h"
#include "work_lock.h"

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
    return fail(Code::internal, "the " + daemon.role + " (pid " + std::to_string(daemon.pid) + ") would not end");
}

int promote(const Call &call) {
    if (!call.arguments.words.empty())
        return call.fail(usage_failure("dcs backup promote takes no words, but got `" + call.arguments.words[0] + "`"));
    const Pool pool(call.directory);
    if (!pool.numbers())
        return call.fail(with_hint(fail(Code::refused, pool.directory() + " is not a private pool"),
                                   "for others, stop the backup, run `dcs_backupd --dir DIR --promote STATE`, and "
                                   "start a scheduler on what it makes"));
    std::string said;
    {
        const auto lock = take_work_lock(pool);
        if (!lock) return call.fail(failure_of("dcs backup promote", lock.status()));
        const Daemon scheduler = pool.scheduler();
        if (stays_up(scheduler) && !call.arguments.has("--yes"))
            return call.fail(with_hint(fail(Code::refused, "the scheduler lives (pid " + std::to_string(scheduler.pid) +
                                                               "): what it has acknowledged and the copy does not have "
                                                               "would be lost"),
                                       "how far the copy is, `dcs backup status` shows; --yes ends the scheduler"));
        if (Status s = end_daemon(scheduler); !s) return call.fail(with_hint(s, "`dcs down`, then again"));
        if (Status s = end_daemon(pool.backup()); !s) return call.fail(with_hint(s, "`dcs down`, then again"));
        const auto ran = run_to_end("dcs_backupd", {"--dir", pool.path("backup"), "--promote",
                                                    pool.path("scheduler/state")});
        if (!ran) return call.fail(failure_of("dcs backup promote", ran.status()));
        if (ran->exit_code != 0)
            return call.fail(with_hint(fail(ran->exit_code == 4 ? Code::refused : Code::io_error, ran->output),
                                       "nothing was promoted; `dcs up` starts what was there"));
        said = ran->output;
    }
    const auto up = run_to_end("dcs", {"up", "--dir", pool.directory()});
    if (!up || up->exit_code != 0)
        return call.fail(with_hint(fail(Code::internal, "the copy was promoted, but the pool did not start: " +
                                                            (up ? up->output : up.status().text)),
                                   "`dcs up`"));
    if (call.format == Format::json) {
        JsonObject json;
        json.add("schema", "dcs.backup.promote/1").add("dir", pool.directory()).add("text", said);
        std::printf("%s\n", json.text().c_str());
    } else if (call.format == Format::name) {
        std::printf("%s\n", pool.directory().c_str());
    } else {
        std::printf("%s\nThe pool serves again; sessions and grains go on.\n", said.c_str());
    }
    return exits::ok;
}

}  // namespace

const Verb backup_promote_verb = {
    "backup",
    "promote",
    "make the backup's copy of the store the scheduler's",
    R"(When the scheduler's disk is lost, or its state directory damaged or deleted, this makes a scheduler of the copy
that the backup keeps (dcs up --mirror): the copy becomes the state directory, in a new epoch, and the pool is
started on it. Sessions go on, control programs and grains find it by themselves, and an old scheduler that comes
back is refused. With --mirror sync nothing is missing that was acknowledged. A state directory that is
still there is kept beside the new one, under another name.

Examples:
  dcs backup status          how far the copy is
  dcs backup promote

Usage: dcs backup promote [--yes] [-o table|json|name] [--dir DIR]

  --yes   although the scheduler lives: it is ended first

Exit code 4: the scheduler lives, or there is no whole copy.
)",
    {{"--yes", 0, false}},
    false,
    0,
    promote};

}  // namespace dcs::commands
