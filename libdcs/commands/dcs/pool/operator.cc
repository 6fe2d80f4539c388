// dcs doctor: what is damaged, set aside, missing or nearly full, and what to do about it.
// dcs reload, dcs log-level: for operators.
#include <algorithm>
#include <cstdio>
#include <ctime>
#include <iterator>
#include <optional>
#include <set>

#include <sys/stat.h>
#include <unistd.h>

#include "base/known_words.h"
#include "commands/dcs/frame/call.h"
#include "commands/dcs/frame/start_hint.h"
#include "commands/dcs/frame/table.h"
#include "commands/dcs/query/copy_state.h"
#include "commands/dcs/query/scheduler.h"
#include "wire/message.h"
#include "base/text.h"

namespace dcs::commands {
namespace {

void print(const std::vector<wire::ProblemRow> &problems) {
    for (const wire::ProblemRow &p : problems) {
        const std::string file = p.file.empty() ? "" : ", " + p.file;
        std::printf("%s\n", printable(p.entity + file + ": " + p.problem).c_str());  // it may quote a grain or a host
        if (!p.affects.empty()) std::printf("  affects: %s\n", printable(p.affects).c_str());
        if (!p.advice.empty()) std::printf("  do:      %s\n", printable(p.advice).c_str());
    }
    if (problems.empty()) std::printf("all is well\n");
    else std::printf("\n%s\n", counted(problems.size(), "problem").c_str());
}

constexpr int idle_s = quiet_looks * poll_ms / 1000;
constexpr int backup_patience_s = 2;  // the scheduler has been asked before

// Sessions of `dcs map` and `dcs submit` that lack grains, where nothing happens any more: the scheduler does not know
// how many there are.
void add_sessions_left(std::vector<wire::ProblemRow> &problems) {
    const SessionsAnswer own = own_sessions();
    for (const Session &session : own.sessions) {
        const double last = std::max(session.submitted_s, session.settled_s);
        if (session.state != "active" || session.ready + session.running > 0 || session.not_submitted() == 0 ||
            last + idle_s > static_cast<double>(::time(nullptr)))
            continue;
        problems.push_back(
            {"session " + session.name(), "",
             std::to_string(session.not_submitted()) + " of its " + counted(session.declared(), "grain") +
                 " are not submitted, and the command that submits them has probably ended",
             shortened(session.command, 60),
             "run the same command again, which continues, or `dcs session close " + session.name() + "`"});
    }
}

bool on_one_disk(const Pool &pool) {
    struct stat store {
    }, copy{};
    return ::stat(pool.path("scheduler").c_str(), &store) == 0 && ::stat(pool.path("backup").c_str(), &copy) == 0 &&
           store.st_dev == copy.st_dev;
}

// Which one the pool has instead of a dcs_backupd here that is not connected. Nothing: this one may be the one.
std::optional<std::string> backup_in_use() {
    Info info;
    if (!info.ask(wire::QueryType::system)) return {};
    const std::vector<wire::BackupRow> &rows = info.system.backups;
    if (rows.empty() || rows[0].name.empty()) return "the host table names no backup";
    if (rows[0].state == "connected") return "the backup of the pool is host " + rows[0].name;
    if (rows[0].state == "not_joined") return "the host table names host " + rows[0].name + ", which has not joined";
    return {};
}

// After a promotion the scheduler is where the backup is, until that moves; then the old one may run on.
void add_backup_beside(const Pool &pool, std::vector<wire::ProblemRow> &problems) {
    const Daemon backup = pool.backup();
    if (pool.maker() != Pool::Maker::other || !pool.scheduler().up || !backup.up) return;
    const auto told = ask<wire::BackupStatus>(backup.directory + "/backup.sock", wire::AskBackup{}, backup_patience_s);
    if (told && told->scheduler && on_one_disk(pool))
        problems.push_back({"backup", "", "is on the disk of the scheduler",
                            "if this disk is lost, so are the store and what the backup has",
                            "let a backup join on another host (`dcs token create --role backup`)"});
    if (!told || told->scheduler) return;
    if (const auto other = backup_in_use())
        problems.push_back({"dcs_backupd (pid " + std::to_string(backup.pid) + ")", "",
                            "runs in " + backup.directory + ", and the scheduler does not use it: " + *other,
                            "nothing: it gets no copy of the store; it holds " + counted(told->reports, "report"),
                            "if it was left behind when the backup moved, end it (systemctl disable --now "
                            "dcs-backupd); its log says why it is refused"});
}

int doctor(const Call &call) {
    auto reply = ask_any<wire::DoctorReply>(wire::Doctor{});
    if (!reply) {
        Failure failure = failure_of("the scheduler does not answer", reply.status());
        if (failure.exit == exits::unreachable) {
            if (const auto waits = waits_for_copy(call.directory)) return call.fail(*waits);
            const std::string log = call.directory + "/scheduler/log";  // not where it goes to the journal
            failure.hint = start_hint(call.directory);
            if (::access(log.c_str(), R_OK) == 0)
                failure.hint = "`dcs status` shows which daemons run, " + failure.hint +
                               (daemon_runs_in(call.directory + "/scheduler") ? "; its log is "
                                                                              : "; the reason why it ended is in ") +
                               log;
        }
        return call.fail(failure);
    }
    std::vector<wire::ProblemRow> &problems = reply->problems;
    add_sessions_left(problems);
    add_backup_beside(Pool(call.directory), problems);
    Listing list(call, "dcs.doctor/1", "problems");
    for (const wire::ProblemRow &p : problems) list.add(p.entity, "", wire::to_json(p));
    list.end();
    if (call.format == Format::table) print(problems);
    return problems.empty() ? exits::ok : exits::error;
}

// What has been taken, and is probably not meant.
void print_warnings() {
    const auto reply = ask_any<wire::DoctorReply>(wire::Doctor{});
    if (!reply) return;
    for (const wire::ProblemRow &row : reply->problems)
        if (row.entity.starts_with("login "))
            std::fprintf(stderr, "warning: %s: %s\n", printable(row.file).c_str(), printable(row.problem).c_str());
        else if (const bool policy = row.entity.starts_with("policy ");
                 policy || row.entity == copy_of_store_words || row.entity == "host table")
            std::fprintf(stderr, "warning: %s%s %s: %s\n", printable(row.entity).c_str(), policy ? "" : ":",
                         printable(row.problem).c_str(), printable(row.advice).c_str());
}

std::set<std::string> host_names() {
    std::set<std::string> names;
    Info info;
    if (info.ask(wire::QueryType::hosts))
        for (const wire::HostRow &row : info.hosts) names.insert(row.name);
    return names;
}

// What a mistake in the table has done is said at once.
void print_removed(const std::set<std::string> &before) {
    std::vector<std::string> removed;
    const std::set<std::string> after = host_names();
    std::set_difference(before.begin(), before.end(), after.begin(), after.end(), std::back_inserter(removed));
    if (removed.empty() || after.empty()) return;
    const std::string all = std::to_string(removed.size()) + " of " + counted(before.size(), "host");
    std::fprintf(stderr, "warning: %s left the pool: %s; grains that run there start again elsewhere\n", all.c_str(),
                 printable(some_of(removed)).c_str());
}

int reload(const Call &call) {
    const std::set<std::string> before = host_names();
    const auto reply = ask_any<wire::Done>(wire::Reload{call.arguments.has("move-grains")});
    if (reply) print_removed(before);
    if (reply) print_warnings();
    if (reply) std::printf("settings reread\n");
    if (reply) return exits::ok;
    Failure failure = failure_of("the settings were not reread", reply.status());
    if (failure.exit == exits::usage) failure.exit = exits::error;  // it is a file that is wrong, not the line
    return call.fail(failure);
}

bool is_level(const std::string &word) {
    return std::any_of(std::begin(wire::log_levels), std::end(wire::log_levels),
                       [&](const char *l) { return word == l; });
}

int log_level(const Call &call) {
    const auto &words = call.arguments.words;
    if (!is_level(words[0])) {
        const bool turned = words.size() > 1 && is_level(words[1]);
        return call.fail(usage_failure(
            "`" + words[0] + "` is not a log level: off, error, warn, info or debug",
            !turned ? "for example dcs log-level debug"
                    : "dcs log-level " + words[1] + (words[0] == "scheduler" ? "" : " " + shell_word(words[0]))));
    }
    const wire::SetLogLevel order{words.size() > 1 ? words[1] : "", words[0]};
    const auto reply = ask_any<wire::Done>(order);
    return reply ? exits::ok : call.fail(failure_of("the level was not set", reply.status()));
}

}  // namespace

extern const Verb doctor_verb = {
    .noun = "",
    .name = "doctor",
    .summary = "list problems of the pool, and what to do",
    .about = R"(Lists problems that the scheduler knows: sessions that were set aside because their files are damaged,
other damage of the backing store, a disk that is nearly full, hosts that are late, dead or have never called,
a backup on the scheduler's disk or left behind there, and your grains that no host can take or that come back from
hosts repeatedly.

Examples:
  dcs doctor
  dcs doctor -o json | jq -r '.problems[] | .entity + ": " + .problem'
)",
    .notes = R"(Exit code 0 when all is well, 1 when there is a problem, 5 when the scheduler does not answer.
)",
    .run = doctor};

extern const Verb reload_verb = {
    .noun = "",
    .name = "reload",
    .summary = "make the scheduler reread its settings",
    .about = R"(Makes the scheduler reread its configuration, host table, policy and limits, as SIGHUP does (with
--move-grains). All files are read and checked before anything changes; if one has an error, its line is
named and nothing changes. So it is if the host table would remove all hosts, all connected ones, or one
that runs grains. A login that this host does not know is a warning, and so are hosts that leave the pool, names
of hosts that differ in upper and lower case alone, and commits that wait for the backup's copy of the store.
Settings of `dcs host set` stay.
`dcs status` lists options that take effect only after a restart.
For root, the scheduler's account and the owner of a private pool.

Examples:
  dcs reload
)",
    .options = {{"move-grains", 0, nullptr, no_value,
                 "also when hosts that run grains leave the pool: the grains start again on others, from their\n"
                 "last checkpoint"}},
    .run = reload,
    .formats = false};

extern const Verb log_level_verb = {
    .noun = "",
    .name = "log-level",
    .words = "off|error|warn|info|debug [HOST]",
    .summary = "set what the scheduler or a grain server logs",
    .about = R"(Sets the log level of the scheduler, or with HOST of that host's grain server, until its next start:
off, error, warn, info or debug. For root, the scheduler's account and the owner of a private pool.

Examples:
  dcs log-level debug          the scheduler logs everything
  dcs log-level info local1    a grain server logs less
)",
    .run = log_level,
    .formats = false};

}  // namespace dcs::commands
