// dcs submit: grains from a file, some of them after others; an ordinary control program over dcs.h.
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include "base/clock.h"
#include "base/files.h"
#include "base/text.h"
#include "client/pool.h"
#include "commands/dcs/frame/call.h"
#include "commands/dcs/frame/ending_signals.h"
#include "commands/dcs/frame/pool_directory.h"
#include "commands/dcs/frame/table.h"
#include "commands/dcs/map/progress.h"
#include "commands/dcs/map/session.h"
#include "commands/dcs/pool/start_daemon.h"
#include "commands/dcs/query/grains.h"
#include "commands/dcs/query/scheduler.h"
#include "commands/dcs/run/caller_environment.h"
#include "commands/dcs/run/fresh_session.h"
#include "pki/digest.h"
#include "process/spawn.h"
#include "open_job.h"

namespace dcs::commands {
namespace {

constexpr std::size_t most_file = 64u << 20;
constexpr int taking_over_s = 60;

std::optional<Failure> items_said(const Call &call, std::optional<std::vector<std::string>> &items) {
    const auto array = call.arguments.value("array"), lines = call.arguments.value("each-line");
    if (array && lines) return usage_failure("dcs submit: --array and --each-line exclude each other");
    if (array) {
        auto numbers = items_of_array(*array);
        if (!numbers) return usage_failure("dcs submit: --array: " + numbers.status().text);
        items = std::move(*numbers);
    }
    std::string wrong;
    if (lines) items = lines_of_file(*lines, wrong);
    if (!wrong.empty()) return usage_failure("dcs submit: --each-line: " + wrong);
    return std::nullopt;
}

std::optional<Failure> read_job(const Call &call, Job &job) {
    job.name = call.arguments.words[0];
    const auto text = read_document(job.name, most_file);
    if (!text) return failure_of("", text.status());
    const auto directory = current_directory();
    if (!directory) return failure_of("", directory.status());
    job.directory = *directory;
    std::optional<std::vector<std::string>> items;
    if (auto failure = items_said(call, items)) return failure;
    std::vector<std::string> errors;
    const std::string batch = batch_lines_hint(*text);
    job.file = parse_job_file(*text, job.name, items, errors);
    const bool of_keys = std::any_of(errors.begin(), errors.end(), [](const std::string &error) {
        return error.find("unknown key") != error.npos || error.find("missing") != error.npos;
    });
    if (!errors.empty() && (text->starts_with("#!") || !batch.empty()))
        return usage_failure("dcs submit: " + job.name + " is a script, not a TOML file of grains",
                             "`dcs run --detach -- " +
                                 shell_word(job.name.find('/') == job.name.npos ? "./" + job.name : job.name) +
                                 "` runs it as one grain" + (batch.empty() ? "" : "; " + batch));
    if (!errors.empty()) return errors_in_file(errors, of_keys ? "`dcs submit --help` lists the keys of a file" : "");
    job.parts = prepare_job(job.file, call.directory, errors);
    if (!errors.empty()) return errors_in_file(errors);
    job.ident = ident_of_job(*directory, job.file);
    const std::filesystem::path whole = std::filesystem::path(*directory) / job.name;
    job.place = hex_of(pki::sha256_text(whole.lexically_normal().string())).substr(0, 4);
    job.files = files_of_job(*directory, job.file, job.parts);
    Arguments session = job.file.session;
    for (const auto &option : call.arguments.options)
        if (option.first == "label" || option.first == "nice") session.options.push_back(option);
    return describe_session(session);
}

// Grains that others wait for, and outputs, need a process that keeps running.
bool needs_process(const Job &job, const JobFlow &flow) {
    for (std::size_t i = 0; i < job.parts.size(); ++i)
        if (flow.standing(i) == JobFlow::Standing::waits || !job.parts[i].files.outputs.empty()) return true;
    return false;
}

// It has when it says so. Until then another run could take the session first, and lose it.
Status has_taken_over(pid_t child, const std::string &log) {
    int status = 0;
    struct stat about = {};
    bool ended = false;
    const Instant end = boot_clock() + seconds(taking_over_s);
    while (!ended && boot_clock() < end && (::stat(log.c_str(), &about) != 0 || about.st_size == 0)) {
        pause_ms(10);
        ended = ::waitpid(child, &status, WNOHANG) == child;
    }
    const int code = WIFEXITED(status) ? WEXITSTATUS(status) : exits::error;
    if (ended ? code == exits::ok || code == exits::grain_failed : about.st_size > 0) return Status::ok();
    return fail(Code::internal, "the background process has ended: its log is " + log);
}

// The options that say which job it is, and which session of it.
std::vector<std::string> same_job(const Call &call, int session) {
    std::vector<std::string> options = {"--session=" + std::to_string(session)};
    for (const auto &[name, value] : call.arguments.options)
        if (name == "array" || name == "each-line") options.push_back("--" + name + "=" + value);
    if (call.arguments.has("dir")) options.push_back("--dir=" + call.directory);
    return options;
}

// This command once more, with --wait, as a process of its own. Its log, or why there is none.
Result<std::string> go_on_in_background(const Call &call, int session) {
    const auto folder = submit_folder(call.directory);
    if (!folder) return folder.status();
    if (Status s = make_directories(*folder); !s) return s;
    const std::string log = *folder + "/" + std::to_string(session) + ".log", path = own_folder() + "/dcs";
    SpawnRequest request{path, {path, "submit", call.arguments.words[0], "--wait", "--progress", "none"}};
    for (std::string &option : same_job(call, session)) request.arguments.push_back(std::move(option));
    const Fd log_file(::open(log.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
    if (!log_file) return fail_errno(Code::io_error, log, errno);
    request.environment = current_environment();
    request.environment.push_back(std::string(goes_on_variable) + "=1");
    request.out = request.err = log_file.get();
    request.keeps_others = request.new_session = true;
    const auto child = spawn(request);
    if (!child) return child.status();
    if (Status s = has_taken_over(*child, log); !s) return s;
    return log;
}

int leave_job(const Call &call, const Job &job, const JobWork &work, int session) {
    const std::string number = std::to_string(session);
    const bool process = needs_process(job, work.flow());
    const auto log = process ? go_on_in_background(call, session) : Result<std::string>(std::string());
    if (!log)
        return call.fail(with_new_hint(failure_of("no process submits the waiting grains", log.status()), session));
    if (call.format == Format::json)
        std::printf("%s\n",
                    JsonObject("dcs.submit/1").add("session", session).add("grains", job.file.count).text().c_str());
    else std::printf("%s\n", number.c_str());
    std::vector<std::string> again = {"dcs", "submit", "--wait", job.name};
    for (std::string &option : same_job(call, session)) again.push_back(std::move(option));
    const std::string wait = process ? shell_line(again) : "dcs session wait " + number;
    std::fprintf(stderr, "dcs submit: session %s; `%s` waits for it, `dcs session cat %s` prints outputs\n",
                 number.c_str(), wait.c_str(), number.c_str());
    if (process)
        std::fprintf(
            stderr,
            "dcs submit: a background process submits the rest, its log is %s; after a reboot of this host, run "
            "the same command again\n",
            log->c_str());
    return exits::ok;
}

int conclude_job(const Call &call, const Job &job, const JobFlow &flow, int session) {
    std::vector<std::string> json;
    for (std::size_t i = 0; i < job.file.grains.size(); ++i) {
        if (flow.standing(i) != JobFlow::Standing::barred) continue;
        JsonObject one;
        json.push_back(one.add("name", job.file.grains[i].name).add("why", flow.why_barred(i)).text());
    }
    if (call.format == Format::json) {
        JsonObject all("dcs.submit/1");
        all.add("session", session).add("grains", job.file.count).add("failed", flow.count_failed());
        std::printf("%s\n", all.add_raw("not_run", json_array(json)).text().c_str());
    } else if (!call.arguments.has("wait")) {  // as for one that is not complete
        std::printf("%d\n", session);
    } else {
        std::printf("session %d: %s, %lld failed, %lld did not run\n", session,
                    counted(job.file.count, "grain").c_str(), static_cast<long long>(flow.count_failed()),
                    static_cast<long long>(flow.count_barred()));
    }
    if (flow.count_failed() + flow.count_barred() == 0) return exits::ok;
    // A grain that was killed, or whose outputs could not be written here, has another state.
    const Session own{{.session = session}};
    const bool listed = std::ssize(grains_of(own, {}, "failed").rows) == flow.count_failed();
    std::fprintf(stderr,
                 "dcs submit: `dcs grain ls %d%s` lists what failed; the same command again runs it, and what did not "
                 "run\n",
                 session, listed ? " --state failed" : "");
    return exits::grain_failed;
}

int dry_run(const Job &job) {
    for (std::size_t i = 0; i < job.file.grains.size(); ++i)
        for (std::int32_t n = 0; n < job.file.grains[i].count(); ++n)
            std::printf(
                "%s\n",
                shell_line(words_of_grain(job.file.grains[i], job.parts[i], job.file.grains[i].first + n)).c_str());
    return exits::ok;
}

// Of a program that was edited while its grains ran, results of two versions may be together.
void tell_edited(const Job &job, const OpenedJob &opened, Console &console) {
    if (!opened.changed.empty()) return;  // which was said then
    const SessionsAnswer own = sessions_of({std::to_string(opened.session)});
    if (own.failure) return;
    const Session &session = own.sessions[0];
    const std::string edited =
        changed_since(session.ident, job.ident, files_of_job(job.directory, job.file, job.parts));
    if (edited.empty()) return;
    const std::string words = changed_in_job(session, job.directory, job.file, job.parts, edited).words;
    if (!words.empty()) console.note("warning: " + words);
}

// Its threads look at this frame until the process ends.
[[noreturn]] void work_and_end(const Call &call, const Job &job, JobWork &work, const OpenedJob &opened,
                               Console &console) {
    const auto end = [&](int exit) {
        std::fflush(nullptr);
        std::_Exit(exit);
    };
    const sigset_t signals = block_ending_signals();
    console.note("session " + std::to_string(opened.session) + ": " + opened.how);
    MapLook look(opened.session);
    const auto progress = [&] { return look.added_to(work.progress()); };
    watch_until_end(call.directory, look, console, signals, progress, [&] { return work.last_words(); });
    if (const auto failure = work.run()) {
        console.keep_bar();
        end(call.fail(with_new_hint(*failure, opened.session)));
    }
    console.show(progress());
    console.keep_bar();
    if (const int error = d_pool_close_ses(&this_pool(), opened.session); error != NO_ERROR && !opened.complete)
        end(call.fail(call_failure("session " + std::to_string(opened.session) + " was not closed", error)));
    tell_edited(job, opened, console);
    end(conclude_job(call, job, work.flow(), opened.session));
    std::abort();
}

int submit(const Call &call) {
    Job job;
    if (call.arguments.has("new") && call.arguments.has("session"))
        return call.fail(usage_failure("dcs submit: --new and --session exclude each other"));
    if (const auto failure = read_job(call, job)) return call.fail(*failure);
    if (call.arguments.has("dry-run")) return dry_run(job);
    std::vector<std::string> errors;
    check_outputs(job.file, job.parts, errors);
    if (!errors.empty()) return call.fail(errors_in_file(errors));
    for (const int of_write : {SIGPIPE, SIGXFSZ}) ::signal(of_write, SIG_IGN);
    set_patience(begin_patience_s);
    Console console("dcs submit", shown_of(call.arguments.value("progress").value_or("automatic")));
    this_pool().new_demands = this_pool().new_environment = true;
    auto door = claims_at_door(call.directory);
    const OpenedJob opened = open_job(call, job, console);
    if (door) door->leave();
    if (opened.failure) return call.fail(*opened.failure);
    if (!opened.changed.empty()) console.note("warning: " + opened.changed);
    for (const std::string &note : {opened.environment, opened.other})
        if (!note.empty()) console.note(note);
    work_patiently();
    JobWork work(job.file, job.parts, opened.session, console);
    if (call.arguments.has("wait") || opened.complete) work_and_end(call, job, work, opened, console);
    if (const auto failure = work.submit_startable()) return call.fail(with_new_hint(*failure, opened.session));
    return leave_job(call, job, work, opened.session);
}

}  // namespace

extern const Verb submit_verb = {
    .noun = "",
    .name = "submit",
    .words = "FILE",
    .summary = "run the grains of a file, some after others",
    .about = R"(Submits the grains that a TOML file describes. A grain may come after others: it starts when these have
succeeded, and does not run if one failed. Prints the number of the session and returns; with --wait it returns when
all have ended.

Examples:
  dcs submit study.toml --wait
  dcs submit --array 1-1000 one.toml
  dcs submit --dry-run study.toml
  cat study.toml
    [[grain]]
    name = "prepare"
    command = ["./prepare", "data.csv"]
    [[grain]]
    name = "fit"
    command = ["./fit", "data.csv", "{}"]
    array = "1-100"
    after = "prepare"
)",
    .options =
        {{"wait", 0, nullptr, no_value, "return when all grains have ended"},
         {"array", 0, "RANGES", some_text, "the only grain of the file once for each number: 1-1000, 1-5,9 or 0-90:10"},
         {"each-line", 0, "PATH", some_text, "the only grain of the file once for each line of PATH"},
         {"progress", 0, "HOW", one_of("bar|plain|json|none|automatic"),
          "with --wait, on standard error: bar (default on a terminal), plain, json, none"},
         {"new", 0, nullptr, no_value, "run all again, regardless of earlier runs"},
         {"session", 0, "N", some_text,
          "continue this session of the file, by its number or last, also if exported variables had other values"},
         {"dry-run", 0, nullptr, no_value, "print the commands, as a shell takes them, and run nothing"},
         {"label", 0, "TEXT", some_text, "a label for the session, instead of the file's"},
         {"nice", 0, "N", whole_number(0, 19), "let less nice sessions go first, instead of the file's"}},
    .notes =
        R"(Keys of [[grain]]: name, command (an array of words, no shell), after, input (text) or
input-file, array or each-line (one grain for each number or line, which replaces {} as in `dcs map`), and the options
of `dcs run` without dashes: class, cores, memory, time, attempts, urgent, cwd, env, file, output and the others.
[defaults] has such options for all grains. Keys of the file: label, nice.

The same file in the same directory is the same work, also with other demands and limits (time, memory, cores and so
on): run again after an interruption, the command continues in its session; after failures it runs the failed grains and
those that did not run, with what is new; a complete one prints how it ended. Where exported variables have other values
than they had, it runs nothing without --session or --new.
A warning names a file (program, word of command, file, image) that has changed since a grain that names it succeeded.
Outputs: `dcs session cat N`. A grain that did not make one of its outputs, or whose output cannot be written here, has
failed.

Exit code with --wait: 0 all succeeded, 10 a grain failed or did not run.
)",
    .run = submit};

}  // namespace dcs::commands
