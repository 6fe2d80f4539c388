// dcs backup: what the passive backup has. Asked itself, because it matters most while the scheduler is away.
// dcs backup promote: its copy of the store becomes the scheduler's.
#include <cstdio>
#include <optional>
#include <unistd.h>

#include "base/trusted_path.h"
#include "commands/dcs/query/copy_state.h"
#include "commands/dcs/frame/call.h"
#include "commands/dcs/frame/pool_directory.h"
#include "commands/dcs/frame/start_hint.h"
#include "commands/dcs/frame/table.h"
#include "start_daemon.h"
#include "stop_daemons.h"

namespace dcs::commands {
namespace {

// What both sides say of the copy of the store. The scheduler may be away, or on another host.
struct CopyStatus {
    wire::MirrorStatus at_backup;
    std::optional<wire::MirrorStatus> at_scheduler;
};

CopyStatus ask_copy(const Pool &pool) {
    CopyStatus copy;
    if (auto told = ask<wire::MirrorStatus>(pool.path("backup/backup.sock"), wire::AskMirror{}))
        copy.at_backup = std::move(*told);
    if (auto told = ask<wire::MirrorStatus>(pool.path("scheduler/server.sock"), wire::AskMirror{}))
        copy.at_scheduler = std::move(*told);
    return copy;
}

std::string copy_text(const CopyStatus &copy, bool far) {
    const wire::MirrorStatus &there = copy.at_backup;
    const std::string whole =
        there.name == 0 ? "no whole copy of the store" : "copy of the store as of turn " + std::to_string(there.copied);
    if (!copy.at_scheduler) {
        if (there.name == 0) return whole;
        if (there.text.find("refuses it") != there.text.npos) return whole + "; " + there.text;
        return whole + (far ? ", on the scheduler's host `dcs backup status` says whether it is current"
                            : "; the scheduler does not answer");
    }
    const wire::MirrorStatus &s = *copy.at_scheduler;
    if (s.mode == "off") return whole + " (--mirror off)";
    std::string text = whole + ", " + copy_state_text(s);
    const bool repeats = !s.text.empty() &&
                         (there.text.find(s.text) != std::string::npos || s.text.find(there.text) != std::string::npos);
    if (!there.text.empty() && !repeats) text += "; the backup says: " + there.text;
    return text;
}

std::string copy_json(const CopyStatus &copy) {
    const wire::MirrorStatus none, &there = copy.at_backup;
    const wire::MirrorStatus &s = copy.at_scheduler ? *copy.at_scheduler : none;
    JsonObject json;
    json.add("whole", there.name != 0).add("epoch", there.epoch).add("turn", there.copied);
    json.add("mode", s.mode).add("state", copy.at_scheduler ? s.state : "away").add("scheduler_turn", s.turn);
    json.add("lag_turns", s.lag_turns).add("lag_bytes", s.lag_bytes).add("lag_s", s.lag_s);
    json.add("attached", s.attached).add("detached", s.detached).add("waiting_s", s.waiting_s);
    json.add("why", s.text.empty() || there.text.empty() ? s.text + there.text : s.text + "; " + there.text);
    return json.text();
}

void print_table(const Daemon &daemon, const wire::BackupStatus &s, const CopyStatus &copy) {
    const auto number = [](std::uint64_t n) { return std::to_string(n); };
    std::printf("backup     pid %d, up %s\n", daemon.pid, seconds_text(s.up_s).c_str());
    std::printf("scheduler  %s\n", s.scheduler ? "connected" : "not connected");
    std::printf("servers    %d connected\n", s.servers);
    std::printf("holds      %s of %s, %s of %s\n", counted(s.reports, "report").c_str(),
                counted(s.hosts, "host").c_str(), bytes_text(s.bytes).c_str(), bytes_text(s.most_bytes).c_str());
    std::printf("since then %s taken, %s handed over, %s refused\n", number(s.taken).c_str(),
                number(s.handed_over).c_str(), number(s.refused).c_str());
    // One that is connected, and not on this host.
    const bool far = s.scheduler && !copy.at_scheduler;
    std::printf("copy       %s\n", copy_text(copy, far).c_str());
}

// The backup is on another host, or dead; what the scheduler here knows of its copy.
int status_of_far_copy(const Call &call, const Pool &pool, const CopyStatus &copy) {
    const wire::MirrorStatus &s = *copy.at_scheduler;
    const std::string as_of = s.copied != 0 ? "as of turn " + std::to_string(s.copied) + ", " : "";
    JsonObject json("dcs.backup.status/1");
    return print_as_asked(call, json.add("dir", pool.directory()).add_raw("copy", copy_json(copy)), "backup",
                          "backup     not on this host\ncopy       " + as_of + copy_state_text(s));
}

std::string hint_about(const Daemon &backup, const Pool &pool) {
    const bool none = ::access(backup.directory.c_str(), F_OK) != 0;
    const bool by_up = pool.maker() == Pool::Maker::dcs_up;
    if (none && ::access((std::string(services_place) + "/backup/service").c_str(), F_OK) == 0)
        return std::string("the backup of this host: dcs backup status --dir ") + services_place;
    if (by_up && backup.up) return "it runs as process " + std::to_string(backup.pid) + " and may answer later";
    if (by_up) return none ? "there is none; `dcs up` starts one" : "`dcs up` starts it again";
    if (none && !pool.exists()) return start_hint(pool.directory());
    if (!none) return "start it as before: dcs_backupd --dir " + backup.directory + " ...";
    return "this host has none; on the backup's host, run dcs backup status --dir DIR, where its own directory is "
           "DIR/backup";
}

int show_backup(const Call &call) {
    const Pool pool(call.directory);
    const Daemon daemon = pool.backup();
    const auto answer = ask<wire::BackupStatus>(daemon.directory + "/backup.sock", wire::AskBackup{});
    if (!answer) {
        if (const CopyStatus copy = ask_copy(pool); copy.at_scheduler && copy.at_scheduler->mode != "off")
            return status_of_far_copy(call, pool, copy);
        Failure failure = failure_of("the backup of " + pool.directory(), answer.status());
        if (failure.exit == exits::unreachable) failure.hint = hint_about(daemon, pool);
        return call.fail(failure);
    }
    if (call.format == Format::table) {
        print_table(daemon, *answer, ask_copy(pool));
    } else if (call.format == Format::name) {
        std::printf("backup\n");
    } else {
        JsonObject json("dcs.backup.status/1");
        json.add("dir", pool.directory()).add("pid", daemon.pid);
        json.add("up_s", answer->up_s).add("scheduler", answer->scheduler).add("servers", answer->servers);
        json.add("hosts", answer->hosts).add("reports", answer->reports).add("bytes", answer->bytes);
        json.add("most_bytes", answer->most_bytes).add("taken", answer->taken);
        json.add("handed_over", answer->handed_over).add("refused", answer->refused);
        json.add_raw("copy", copy_json(ask_copy(pool)));
        std::printf("%s\n", json.text().c_str());
    }
    return exits::ok;
}

int detach(const Call &call) {
    const Pool pool(call.directory);
    const wire::AskMirror order{wire::opening_form, true};
    const auto answer = ask<wire::MirrorStatus>(pool.path("scheduler/server.sock"), order);
    if (!answer) {
        Failure failure = failure_of("the scheduler of " + pool.directory(), answer.status());
        if (failure.exit == exits::unreachable) failure.hint = start_hint(pool.directory()) + "; then detach";
        return call.fail(failure);
    }
    const bool away = answer->state == "away" || !answer->text.empty();
    JsonObject json("dcs.backup.detach/1");
    return print_as_asked(call, json.add("dir", pool.directory()).add("detached", answer->detached), "backup",
                          away ? "Commits do not wait for the backup's copy until it is current again."
                               : "Commits do not wait for the backup's copy. Stop the backup for its maintenance: when "
                                 "it is back\nand its copy is current, commits wait again.");
}

constexpr int stop_s = 20;

Failure not_promoted(const Status &status, const std::string &hint) {
    return failure_of("dcs backup promote", status, hint);
}

Failure promotion_failed(const Pool &pool, const Status &status) {
    if (status.code == Code::internal)
        return not_promoted(status,
                            "remove the cause and repeat the command, which completes a promotion that has begun");
    const bool state = ::access(pool.path("scheduler/state/format").c_str(), F_OK) == 0;
    return not_promoted(status, pool.numbers() && state ? "nothing was promoted; `dcs up` starts the pool unchanged"
                                                        : "nothing was promoted");
}

Status end_daemon(const Daemon &daemon) {
    if (stop_daemons({daemon}, stop_s).empty()) return Status::ok();
    return fail(Code::internal,
                "the " + daemon.role + " (pid " + std::to_string(daemon.pid) + ") could not be stopped");
}

Result<std::string> run_promotion(const Pool &pool) {
    const auto ran =
        run_to_end("dcs_backupd", {"--dir", pool.path("backup"), "--promote", pool.path("scheduler/state")});
    if (!ran) return ran.status();
    // It exits by 4 if nothing has changed.
    if (ran->exit_code != 0) return fail(ran->exit_code == 4 ? Code::refused : Code::internal, ran->output);
    return ran->output;
}

int tell(const Call &call, const Pool &pool, const std::string &said, const std::string &next) {
    JsonObject json("dcs.backup.promote/1");
    return print_as_asked(call, json.add("dir", pool.directory()).add("text", said), pool.directory(),
                          said + "\n" + next);
}

// On the backup's own host, of a pool of several. Whether the scheduler is dead only the operator knows; its daemons
// and those of this host are started by their services.
int promote_of_hosts(const Call &call, const Pool &pool) {
    for (const Daemon &daemon : {pool.scheduler(), pool.backup()})
        if (stays_up(daemon))
            return call.fail(
                not_promoted(fail(Code::refused, "the " + daemon.role + " of " + pool.directory() +
                                                     " is running (pid " + std::to_string(daemon.pid) + ")"),
                             "stop its service, then promote"));
    const auto said = run_promotion(pool);
    if (!said) return call.fail(promotion_failed(pool, said.status()));
    const std::string scheduler = pool.path("scheduler");
    const bool packaged = pool.directory() == services_place;  // their service names this file
    const std::string files = "Next: put the pool's authority into " + scheduler + "/pki and its host table into " +
                              (packaged ? "/etc/dcs/hosts" : scheduler + "/hosts");
    return tell(call, pool, *said,
                packaged && has_service("dcs-scheduler")
                    ? files + ", then `systemctl start dcs-scheduler dcs-backupd`."
                    : files + ", then start `dcs_scheduler --dir " + scheduler +
                          (packaged ? " --hosts /etc/dcs/hosts" : "") +
                          " --tls ADDRESS:PORT` with --group and --mirror as before, and the backup.");
}

int promote(const Call &call) {
    const Pool pool(call.directory);
    const auto owner = account_of_path(pool.directory());
    if (!owner) return call.fail(not_promoted(owner.status(), "--dir DIR names the pool"));
    if (*owner != ::geteuid())
        return call.fail(not_promoted(
            fail(Code::refused, pool.directory() + " is the pool of another user (uid " + std::to_string(*owner) + ")"),
            "run it as that user: root does not follow links in a directory of a user"));
    if (!pool.numbers()) return promote_of_hosts(call, pool);
    std::string said;
    {
        const auto lock = take_work_lock(pool);
        if (!lock) return call.fail(failure_of("dcs backup promote", lock.status()));
        const Daemon scheduler = pool.scheduler();
        if (stays_up(scheduler) && !call.arguments.has("yes"))
            return call.fail(
                not_promoted(fail(Code::refused, "the scheduler is running (pid " + std::to_string(scheduler.pid) +
                                                     "): acknowledged data that the copy does not have would be lost"),
                             "`dcs backup status` shows the copy's progress; --yes ends the scheduler"));
        if (Status s = end_daemon(scheduler); !s) return call.fail(not_promoted(s, "run `dcs down`, then try again"));
        if (Status s = end_daemon(pool.backup()); !s)
            return call.fail(not_promoted(s, "run `dcs down`, then try again"));
        const auto ran = run_promotion(pool);
        if (!ran) return call.fail(promotion_failed(pool, ran.status()));
        said = *ran;
    }
    const auto up = run_to_end("dcs", {"up", "--dir", pool.directory()});
    if (!up || up->exit_code != 0)
        return call.fail(not_promoted(fail(Code::internal, "the copy was promoted, but the pool did not start: " +
                                                               (up ? up->output : up.status().text)),
                                      "`dcs up`"));
    return tell(call, pool, said, "The pool serves again; sessions and grains continue.");
}

}  // namespace

extern const Verb backup_detach_verb = {
    .noun = "backup",
    .name = "detach",
    .summary = "let commits proceed without the backup's copy",
    .about = R"(In a pool whose commits wait for the backup's copy of the store (--mirror sync), the scheduler does not
answer while the backup is down. This lets commits proceed without the copy. Data acknowledged from now on is lost
if the scheduler's disk is lost. The setting is durable, and ends when the copy is current again; if the backup
is connected, only after it (or the scheduler) has been stopped and is back. So before a planned maintenance of the
backup, detach it and then stop it.

Examples:
  dcs backup detach
)",
    .notes = R"(For the account of the scheduler, and root, on its host. Exit codes: 4 no commit waits for the copy, or
you may not do this; 5 the scheduler does not answer.
)",
    .run = detach};

extern const Verb backup_status_verb = {
    .noun = "backup",
    .name = "status",
    .summary = "show the passive backup's state",
    .about = R"(Shows whether the passive backup runs, whether the scheduler and grain servers are connected to it,
how many reports it holds, and its counters since its start. The command asks the backup itself, so it works while
the scheduler is down. If the backup keeps a copy of the scheduler's store (dcs up --mirror), the command also shows
the copy's progress and the scheduler's view of it.

Examples:
  dcs backup status
  dcs backup status -o json | jq .reports
  dcs backup status -o json | jq .copy.lag_s
)",
    .notes = R"(The backup hands held reports over as soon as the scheduler is back. For root and the account of the
pool's daemons. Exit codes: 4 you may not do this; 5 the backup does not answer.
)",
    .run = show_backup};

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
    .options = {{"yes", 0, nullptr, no_value, "promote even if the scheduler runs, and end it first"}},
    .notes = R"(In a pool of several hosts, run this on the backup's host while backup and scheduler are stopped. It
makes DIR/scheduler/state from the copy in DIR/backup. BACKUP.md says what else a scheduler there needs, and how
hosts find it.

Exit code 4: the scheduler runs, or there is no whole copy.
)",
    .run = promote};

}  // namespace dcs::commands
