// dcs replay-check: a control program against the record of its sessions, without hosts.
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/text.h"
#include "commands/dcs/query/scheduler.h"
#include "commands/dcs/frame/call.h"
#include "commands/dcs/frame/ending_signals.h"
#include "export_reader.h"
#include "commands/dcs/query/grains.h"
#include "commands/dcs/frame/pool_directory.h"
#include "replay_proxy.h"
#include "commands/dcs/pool/start_daemon.h"
#include "commands/dcs/pool/stop_daemons.h"
#include "commands/dcs/frame/table.h"

namespace dcs::commands {
namespace {

constexpr int copy_stop_s = 5, export_patience_s = 86400;
constexpr std::size_t named_grains = 5;

struct Checked {
    std::vector<std::string> records, command;
};

// What is made for the check and goes afterwards: exports, a scheduler of our own with them, and the directory that
// the program takes for its pool.
class Stage {
public:
    ~Stage() {
        if (pool_) stop_daemons({pool_->scheduler()}, copy_stop_s);
        std::error_code ignored;
        if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
    }
    Status make() {
        const char *where = std::getenv("TMPDIR");
        const std::string place = where && *where == '/' ? where : "/tmp";
        std::string name = place + "/dcs-replay-XXXXXX";
        if (::mkdtemp(name.data()) == nullptr)
            return fail_errno(Code::io_error, "cannot make a directory in " + place + " (TMPDIR names another place)",
                              errno);
        path_ = name;
        for (const char *part : {"/real", "/real/scheduler", "/pool", "/pool/scheduler"})
            if (::mkdir((path_ + part).c_str(), 0700) != 0) return fail_errno(Code::io_error, path_ + part, errno);
        const std::string directory = path_ + "/real/scheduler";
        if (Status s = write_file(directory + "/hosts", ""); !s) return s;
        pool_.emplace(path_ + "/real");
        return start_daemon({"dcs_scheduler", {"--dir", directory, "--hosts", directory + "/hosts"}, directory});
    }
    std::string real() const { return path_ + "/real"; }
    std::string pool() const { return path_ + "/pool"; }
    std::string record(std::size_t i) const { return path_ + "/record" + std::to_string(i); }

private:
    std::string path_;
    std::optional<Pool> pool_;
};

// Another run of this very command; what was wrong goes to standard error. Its exit code.
int run_dcs(const Call &call, const std::vector<std::string> &words) {
    const auto ran = run_program(own_folder() + "/dcs", words, "", export_patience_s);
    if (!ran) return call.fail(failure_of("preparing the replay", ran.status()));
    if (!ran->errors.empty()) std::fprintf(stderr, "%s\n", ran->errors.c_str());
    return ran->exit_code;
}

// The record as a session of the scheduler on the stage. An exit code, 0: done.
int put_on_stage(const Call &call, const Stage &stage, const std::string &record, std::size_t i,
                 std::map<std::int32_t, Recorded> &records) {
    struct stat st {};
    std::string directory = record;
    if (::stat((record + "/session").c_str(), &st) != 0) {
        if (record.rfind("./", 0) == 0 || record.find('/') != record.rfind('/') || record[0] == '/')
            return call.fail(not_found_failure(record + " holds no exported session: it has no file `session`",
                                               "`dcs session export SES DIR` makes one"));
        directory = stage.record(i);
        const int code = run_dcs(call, {"session", "export", "--dir", call.directory, record, directory});
        if (code != 0) return code;
    }
    const auto exported = read_export(directory);
    if (!exported) return call.fail(failure_of(directory, exported.status()));
    if (const int code = run_dcs(call, {"session", "import", "--dir", stage.real(), directory}); code != 0) return code;
    const wire::ExportedSession &head = exported->head;
    records[head.session] = Recorded{head.ident, {}, head.handed_out};
    return exits::ok;
}

// From the scheduler on the stage.
std::optional<Failure> read_records(std::map<std::int32_t, Recorded> &records) {
    for (auto &[number, record] : records) {
        SessionSelector selector{.number = number};
        const SessionsAnswer sessions = sessions_of(selector);
        if (sessions.failure) return sessions.failure;
        const GrainsAnswer grains = grains_of(sessions.sessions[0], {});
        if (grains.failure) return grains.failure;
        for (const wire::GrainRow &row : grains.rows) record.grains.insert(row.grain);
    }
    return std::nullopt;
}

pid_t start(const Call &call, const Stage &stage, const std::vector<std::string> &command, const sigset_t &ending) {
    std::fflush(stdout);
    const std::vector<char *> argv = pointers_to(command);
    if (const pid_t child = ::fork(); child != 0) return child;
    ::pthread_sigmask(SIG_UNBLOCK, &ending, nullptr);
    if (call.format != Format::table) ::dup2(2, 1);  // standard output is for our own document
    const char *directory = std::getenv("DCS_DIR");
    ::setenv("DCS_REPLAY_OF", directory == nullptr ? "" : directory, 1);  // for grains that get an environment
    ::setenv("DCS_DIR", stage.pool().c_str(), 1);
    ::unsetenv("DCS_AUTH_FD");
    ::unsetenv("DCS_RESUME_FAILED");
    ::execvp(command[0].c_str(), argv.data());
    const int error = errno;
    std::fprintf(stderr, "dcs: %s: %s\n", command[0].c_str(), std::strerror(error));
    ::_exit(error == ENOENT ? exits::no_program : exits::not_executable);
}

std::string some_of(const std::set<std::int32_t> &numbers) {
    std::string text;
    std::size_t n = 0;
    for (const std::int32_t number : numbers) {
        if (n++ == named_grains) return text + ", ... (" + std::to_string(numbers.size()) + " in all)";
        text += (text.empty() ? "" : ", ") + std::to_string(number);
    }
    return text;
}

// What the program left out by the time that it ended.
std::optional<Departure> omission(ReplayProxy &proxy) {
    for (const auto &[number, record] : proxy.records()) {
        const Replayed &replayed = proxy.replayed(number);
        if (replayed.whole(record)) continue;
        std::string what = "it ended without";
        if (!replayed.opened) return Departure{number, -1, what + " opening session " + std::to_string(number)};
        std::set<std::int32_t> left;
        std::set_difference(record.grains.begin(), record.grains.end(), replayed.grains.begin(), replayed.grains.end(),
                            std::inserter(left, left.end()));
        if (!left.empty()) what += " submitting grain " + some_of(left);
        if (replayed.taken < record.handed_out)
            what += std::string(left.empty() ? "" : " and") + " taking result " + std::to_string(replayed.taken + 1) +
                    " of " + std::to_string(record.handed_out) + " that it had taken before";
        return Departure{number, left.empty() ? -1 : *left.begin(), what};
    }
    return std::nullopt;
}

std::string json_of_session(std::int32_t number, const Recorded &record, const Replayed &replayed) {
    JsonObject row;
    row.add("session", number).add("ident", record.ident).add("grains", record.grains.size());
    row.add("repeated", replayed.grains.size()).add("handed_out", record.handed_out).add("taken", replayed.taken);
    return row.add("past_end", replayed.at_end).text();
}

int tell(const Call &call, ReplayProxy &proxy, int code) {
    std::optional<Departure> departure = proxy.departure();
    const bool departs = departure.has_value();
    if (!departure) departure = omission(proxy);
    const bool failed = departure && !departs && code != 0;  // what it left out says nothing about its changes
    if (call.format == Format::name) {
        std::printf("%s\n", failed ? "failed" : departure ? "departs" : "same");
    } else if (call.format == Format::json) {
        std::vector<std::string> rows;
        for (const auto &[number, record] : proxy.records())
            rows.push_back(json_of_session(number, record, proxy.replayed(number)));
        JsonObject all;
        all.add("same", !departure).add("failed", failed).add_raw("sessions", json_array(rows)).add("exit_code", code);
        JsonObject at;
        if (departure) {
            at.add("session", departure->session);
            if (departure->grain >= 0) at.add("grain", departure->grain);
            at.add("what", departure->what);
        }
        all.add_raw("departure", departure ? at.text() : "null");
        print_document("dcs.replay-check/1", "replay", all.text());
    } else {
        for (const auto &[number, record] : proxy.records()) {
            const Replayed &replayed = proxy.replayed(number);
            const std::string grains = counted(record.grains.size(), "grain");
            std::printf("session %d (%s): %zu of %s submitted as recorded, %d of %s taken%s\n", number,
                        record.ident.c_str(), replayed.grains.size(), grains.c_str(), replayed.taken,
                        counted(record.handed_out, "result").c_str(),
                        replayed.at_end ? "; it then continued past the end of the record" : "");
        }
        if (!departure) std::printf("the program repeats its record (exit code %d)\n", code);
        else
            std::printf("the program %s its record, in session %d: %s (exit code %d)\n",
                        failed ? "failed before the end of" : "departs from", departure->session,
                        departure->what.c_str(), code);
    }
    return departure ? exits::error : exits::ok;
}

Checked wanted_of(const Call &call) {
    Checked wanted;
    const auto &words = call.arguments.words;
    const auto dashes = std::find(words.begin(), words.end(), "--");
    const auto end = dashes != words.end() ? dashes : words.begin() + (words.empty() ? 0 : 1);
    wanted.records.assign(words.begin(), end);
    wanted.command.assign(dashes != words.end() ? dashes + 1 : end, words.end());
    return wanted;
}

// From here on Ctrl-C is for the program; the report covers its calls until then.
sigset_t without_interrupt(sigset_t ending) {
    sigset_t interrupt;
    ::sigemptyset(&interrupt);
    ::sigaddset(&interrupt, SIGINT);
    ::signal(SIGINT, SIG_IGN);
    ::pthread_sigmask(SIG_UNBLOCK, &interrupt, nullptr);
    ::sigdelset(&ending, SIGINT);
    return ending;
}

int check_on_stage(const Call &call, const Checked &wanted, const sigset_t &ending) {
    Stage stage;
    if (Status s = stage.make(); !s) return call.fail(failure_of("preparing the replay", s));
    std::map<std::int32_t, Recorded> records;
    for (std::size_t i = 0; i < wanted.records.size(); ++i)
        if (const int code = put_on_stage(call, stage, wanted.records[i], i, records); code != 0) return code;
    open_this_pool(stage.real());
    if (const auto failure = read_records(records)) return call.fail(*failure);
    auto proxy = ReplayProxy::open(stage.pool(), stage.real() + "/scheduler/user.sock", std::move(records));
    if (!proxy) return call.fail(failure_of("preparing the replay", proxy.status()));
    const pid_t child = start(call, stage, wanted.command, ending);
    if (child < 0) return call.fail(failure_of(wanted.command[0], fail_errno(Code::io_error, "fork", errno)));
    const sigset_t asked = without_interrupt(ending);
    const Fd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, child, 0)));
    const Fd signals(::signalfd(-1, &asked, SFD_CLOEXEC | SFD_NONBLOCK));
    const Status watched = pidfd && signals ? Status::ok() : fail_errno(Code::io_error, "it cannot be watched", errno);
    if (watched) (*proxy)->serve(pidfd.get(), signals.get());
    if (is_asked_to_end() || !watched) {
        end_child(child);
        return watched ? exits::error : call.fail(failure_of(wanted.command[0], watched));
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    return tell(call, **proxy, WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status));
}

int replay_check(const Call &call) {
    const Checked wanted = wanted_of(call);
    if (wanted.records.empty() || wanted.command.empty())
        return call.fail(usage_failure("dcs replay-check: SES or PROGRAM is missing",
                                       "dcs replay-check SES|DIR... -- PROGRAM [ARG...]"));
    const sigset_t ending = block_ending_signals();  // until the stage is removed
    const int code = check_on_stage(call, wanted, ending);
    ::pthread_sigmask(SIG_UNBLOCK, &ending, nullptr);
    return code;
}

}  // namespace

extern const Verb replay_check_verb = {
    .noun = "",
    .name = "replay-check",
    .words = "SES|DIR... -- PROGRAM [ARG...]",
    .summary = "does a control program repeat what its session recorded?",
    .about = R"(Runs a control program against the record of its sessions, on this host, without grain servers and
without changing the pool: the record answers its submissions, and results come back in the recorded order.
Reports whether the program repeats its record, or where it departs from it: the recorded and the new value, or a
missing grain or result. Use it after changing a program whose sessions are unfinished.

Examples:
  dcs replay-check 7 -- ./primes 1000000
  dcs replay-check 1 2 3 -- find_factor -f numbers     a program with three sessions
  dcs replay-check session-ann-7 -- ./primes 1000000   a directory that `dcs session export` wrote
)",
    .notes = R"(The program must resume its sessions by d_resume_ses with sent_reset, as a rerun does, or by
d_reopen_ses. After the end of the record (the program was killed, or still runs) its further calls are not
departures, and fail as in a closed session. With -o json or name the program's standard output goes to standard
error.

A program that fails where it has done only what is recorded, as one that is not there, is no departure either: the
report says that it failed.

Exit code: 0 it repeats its record, 1 it departs or failed before the record's end, or the check itself failed (standard
error then says so).
)",
    .run = replay_check,
    .command_follows = true};

}  // namespace dcs::commands
