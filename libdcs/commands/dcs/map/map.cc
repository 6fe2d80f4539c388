// dcs map: a bag of grains; an ordinary control program over dcs.h.
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <thread>
#include <unistd.h>

#include "commands/dcs/query/grains.h"
#include "base/clock.h"
#include "base/text.h"
#include "client/pool.h"
#include "commands/dcs/query/why_waiting.h"
#include "commands/dcs/frame/call.h"
#include "commands/dcs/frame/ending_signals.h"
#include "commands/dcs/query/scheduler.h"
#include "commands/dcs/run/caller_environment.h"
#include "commands/dcs/run/demand_options.h"
#include "commands/dcs/run/placeholders.h"
#include "checks.h"
#include "files.h"
#include "inputs.h"
#include "progress.h"
#include "session.h"
#include "work.h"
#include "commands/dcs/frame/pool_directory.h"
#include "commands/dcs/frame/table.h"

extern char **environ;

namespace dcs::commands {
namespace {

// 0, +N and N% are of GNU parallel, which counts the processors of one host.
std::optional<Failure> take_jobs(const Call &call, std::int64_t &at_once) {
    const auto jobs = call.arguments.value("jobs");
    if (!jobs) return std::nullopt;
    const auto number = number_of(*jobs, 1, INT32_MAX);
    at_once = number.value_or(0);
    if (number) return std::nullopt;
    return usage_failure("dcs map: --jobs " + *jobs + ": a whole number, at least 1",
                         "without --jobs grains run on all free slots of the pool; `dcs host ls` shows them");
}

std::optional<Failure> make_options(const Call &call, const MapPlan &plan, MapOptions &options) {
    if (auto failure = take_demands(call.arguments, options.demands)) return failure;
    if (auto failure = take_file_words(call.arguments, options.files, true)) return failure;
    if (auto failure = check_outputs(plan, options.files)) return failure;
    options.brings = call.arguments.has("bring");
    if (auto failure = take_jobs(call, options.at_once)) return failure;
    options.tag = call.arguments.has("tag");
    options.results = call.arguments.value("results").value_or("");
    options.shown = shown_of(call.arguments.value("progress").value_or("automatic"));
    options.environment = steady_environment(environ, call.directory, plan.directory);
    add_umask(options.environment);
    if (auto failure = set_variables(call.arguments, plan.directory, options.environment)) return failure;
    if (auto failure = describe_session(call.arguments)) return failure;
    options.format = call.format;
    return std::nullopt;
}

// One word that is a line for a shell, as parallel would take it, is no program; but one may have such a name.
std::optional<Failure> find_the_program(const MapPlan &plan, const MapOptions &options, std::string &path) {
    const std::string &word = plan.command[0];
    const bool depends = has_placeholder(word, plan.columns);
    if (plan.inputs.empty() || (depends && !is_shell_text(word))) return std::nullopt;
    const std::string name = plan.words(1)[0];
    const auto program = program_of(options.files, options.brings, name, plan.directory);
    if (program && !depends) path = *program;
    if (program) return std::nullopt;
    Failure failure = failure_of("dcs map", program.status());
    if (is_shell_text(word))
        failure.hint = "dcs map starts programs without a shell: dcs map -- " + through_a_shell(word);
    return failure;
}

std::optional<Failure> make_joblog(const Call &call, std::unique_ptr<JobLog> &joblog) {
    const auto path = call.arguments.value("joblog");
    if (!path) return std::nullopt;
    auto created = JobLog::create(*path);
    if (!created) return failure_of("--joblog", created.status());
    joblog = std::move(*created);
    return std::nullopt;
}

// The session outlives a signal, because everything that is done is kept.
std::string last_words(int session, const Call &call, const MapWork &work) {
    const std::string n = std::to_string(session);
    return "interrupted; session " + n + " continues in the pool" + work.submitted_part() +
           ". Run the same command again" + (call.arguments.has("new") ? ", without --new," : "") +
           " to take its results; `dcs session close " + n + "` stops it";
}

// Outputs of successful grains are not in their places: what helps.
void tell_lost(const MapWork &work, const MapPlan &plan, int session, Console &console) {
    if (work.lost() == 0) return;
    const std::string number = std::to_string(session);
    console.note(std::to_string(work.lost()) + " of " + counted(plan.inputs.size(), "grain") +
                 " succeeded, but not all of their outputs could be written here; correct that, then the same command "
                 "again copies them. Session " +
                 number + " stays open for it; `dcs session close " + number + "` ends it");
}

// " (exit code 2, signal 9)"
std::string ends_text(const MapWork &work) {
    constexpr std::size_t most = 5;
    std::vector<std::string> ends(work.ends().begin(), work.ends().end());
    if (ends.size() > most) {
        ends.resize(most);
        ends.push_back("...");
    }
    return ends.empty() ? "" : " (" + joined(ends) + ")";
}

// With files of its own a grain has no others. In a pool of several users grains do not run as the caller.
void tell_closed(const MapPlan &plan, const FileWords &files, int session, Console &console) {
    if (const std::string what = left_behind(plan, files); !what.empty()) console.note(what);
    const auto first = grain_now("", session, 1);
    const std::string directory = first && first->uid > 0 ? closed_directory(plan, first->uid) : "";
    if (directory.empty()) return;
    console.note("grains run under uid " + std::to_string(first->uid) + ", which may not enter " +
                 printable(directory) + ": --file in={} hands them the inputs, as the file `in`");
}

// What remains of the run for people. A session in which nothing ran has nothing to keep: it is removed, and the same
// command starts over.
void conclude(const MapWork &work, const MapPlan &plan, const FileWords &files, const OpenedMap &opened,
              std::int64_t failures, const Progress &whole, Console &console) {
    const std::string of_all = counted(plan.inputs.size(), "grain"), session = std::to_string(opened.session);
    // Elsewhere the exit code and the outputs of a short run say it.
    if (console.shown() == Shown::bar || (console.shown() == Shown::plain && whole.elapsed_s >= long_run_s))
        console.note(
            of_all +
            (opened.done_before > 0 ? ", " + std::to_string(opened.done_before) + " of them before this run," : "") +
            " in " + seconds_text(whole.elapsed_s) + ", " + std::to_string(failures) + " failed; " +
            seconds_text(work.cpu_s()) + " of CPU" +
            (whole.saved_cpu_s > 0 ? ", checkpoints saved another " + seconds_text(whole.saved_cpu_s) : "") +
            "; session " + session + ", `dcs session cat " + session + "` prints " +
            (opened.earlier.empty() ? "the outputs again" : "what ran in it again") +
            better_together(plan, work.cpu_s()));
    tell_lost(work, plan, opened.session, console);
    if (failures == 0) return;
    const bool none_ran = opened.fresh && work.nothing_ran() && work.killed() == 0;
    const bool nothing = none_ran && d_pool_clean_ses(&this_pool(), opened.session) == NO_ERROR;
    const std::int64_t listed = work.ran_and_failed(), killed = work.killed();
    const std::string some_killed =
        killed == 0 ? "" : "; " + std::to_string(killed) + (killed == 1 ? " was" : " were") + " killed";
    console.note(std::to_string(failures) + " of " + of_all + " failed" + ends_text(work) +
                 (nothing ? "; none ran, and session " + session + " is removed"
                  : killed == failures
                      ? std::string(", because ") + (killed == 1 ? "it was" : "they were") +
                            " killed; the same command runs " + (killed == 1 ? "it" : "them") + " again"
                  : listed == 0 ? ", because they could not run" + some_killed
                                : "; `dcs grain ls " + session + " --state failed` lists " +
                                      (listed == failures ? "them" : "the " + std::to_string(listed) + " that ran") +
                                      some_killed));
    if (listed > 0) tell_closed(plan, files, opened.session, console);
}

void tell_opened(const OpenedMap &opened, Console &console) {
    console.note("session " + std::to_string(opened.session) + ": " + opened.how);
    if (!opened.environment.empty()) console.note(opened.environment);
    if (!opened.warning.empty()) console.note("warning: " + opened.warning);
}

// Files that have changed while grains ran, except what these wrote to their own inputs.
void tell_changed(const OpenedMap &opened, const MapPlan &plan, const FileWords &words, const std::vector<MapFile> &now,
                  Console &console) {
    if (fingerprint_of(now) == opened.files) return;
    const SessionsAnswer ours = sessions_of({std::to_string(opened.session)});
    const std::string changed = ours.failure ? "" : changed_under(ours.sessions[0], opened.files, now, plan, words);
    if (!changed.empty())
        console.note("warning: " + changed + " has changed while this map ran: if grains read it, results of both " +
                     "versions may be mixed. --new runs all grains again");
}

// Was a grain of another session submitted as this map would?
auto alike_to(const MapPlan &plan, const MapOptions &options) {
    return [&](const wire::GrainRow &row, const std::vector<std::string> *environment) {
        const std::string &input = plan.inputs[static_cast<std::size_t>(row.grain - 1)];
        const std::vector<FileWords::Pair> outputs = options.files.for_input(input, row.grain).outputs;
        const auto same = [](const auto &pair, const wire::GrainFile &file) { return pair.name == file.name; };
        return row.env == (environment != nullptr ? *environment : options.environment) &&
               std::equal(outputs.begin(), outputs.end(), row.files.begin(), row.files.end(), same);
    };
}

int print_commands(const MapPlan &plan) {
    for (std::size_t i = 1; i <= plan.inputs.size(); ++i)
        std::printf("%s\n", shell_line(plan.words(static_cast<std::int32_t>(i))).c_str());
    return exits::ok;
}

// All grains are submitted, and the command does not wait. The same command resumes the session.
[[noreturn]] void leave(const OpenedMap &opened, MapWork &work, Console &console) {
    const std::int64_t missing = work.submit_only();
    const std::string n = std::to_string(opened.session);
    std::printf("%d\n", opened.session);
    if (missing > 0) console.note(counted(missing, "grain") + " cannot be submitted");
    console.note("submitted; `dcs session wait " + n + "` waits for it, `dcs session cat " + n +
                 "` prints the outputs" + (opened.earlier.empty() ? "" : " of what runs in it") +
                 ", `dcs session close " + n + "` stops it");
    const bool told = console.flush();
    tell_if_none_can("dcs map", opened.session, 1);
    std::_Exit(told ? exit_for_failed(missing) : exits::map_failed);
}

void tell_of_words(const MapPlan &plan, const std::string &program, Console &console) {
    if (const std::string lost = batch_lines_of(program); !lost.empty()) console.note("warning: " + lost);
    if (const std::string text = foreign_placeholder(plan); !text.empty()) console.note("note: " + text);
    if (const std::string input = read_by_shell(plan); !input.empty())
        console.note("note: the shell reads the input " + printable(shell_word(input)) +
                     " as words of its own; hand inputs over: sh -c '... \"$1\" ...' sh {}");
}

int map(const Call &said) {
    const Call call = in_our_words(said);
    MapPlan plan;
    MapOptions options;
    std::string program;
    if (const auto failure = make_plan(call, plan)) return call.fail(*failure);
    if (const auto failure = make_options(call, plan, options)) return call.fail(*failure);
    plan.append = !options.files.by_input(plan.columns);
    if (const auto failure = find_the_program(plan, options, program)) return call.fail(*failure);
    if (plan.inputs.empty()) {
        std::fprintf(stderr, "dcs map: no inputs, nothing to do\n");
        return exits::ok;
    }
    if (call.arguments.has("dry-run")) return print_commands(plan);
    const bool detach = call.arguments.has("detach");
    for (const char *option : {"jobs", "joblog", "results", "output"})
        if (detach && call.arguments.has(option))
            return call.fail(usage_failure("dcs map: --detach excludes --" + std::string(option) +
                                           ", which needs dcs map to run until the end"));
    if (call.arguments.has("bring") && program.empty())
        return call.fail(usage_failure("dcs map: --bring takes a program's name, not " + plan.command[0]));
    if (call.arguments.has("bring")) options.files.program = program;
    if (const auto failure = make_results(options.results, plan)) return call.fail(*failure);
    if (const auto failure = check_files(plan, options.files)) return call.fail(*failure);
    std::unique_ptr<JobLog> joblog;
    if (const auto failure = make_joblog(call, joblog)) return call.fail(*failure);
    options.joblog = joblog.get();
    for (const int of_write : {SIGPIPE, SIGXFSZ}) ::signal(of_write, SIG_IGN);
    set_patience(begin_patience_s);
    this_pool().new_demands = this_pool().new_environment = true;
    Console console("dcs map", options.shown);
    const GrainsNow now{[&](int session, const std::vector<int> &grains) -> std::optional<Failure> {
                            OpenedMap closed{.session = session};
                            MapWork(plan, options, closed, console).submit_again(grains);
                            return std::nullopt;
                        },
                        [&](int) -> const std::vector<std::string> & { return options.environment; }};
    const auto files = [&](std::size_t inputs) { return files_of({{plan, program, options.files, inputs}}); };
    const OpenedMap opened = open_map(call, {plan, files, alike_to(plan, options), options.files}, now);
    if (opened.failure) return call.fail(*opened.failure);
    if (joblog)
        if (const Status s = joblog->begin(); !s) return call.fail(failure_of("--joblog", s));
    work_patiently();
    const sigset_t signals = block_ending_signals();

    tell_opened(opened, console);
    tell_of_words(plan, program, console);
    MapWork work(plan, options, opened, console);
    if (detach) leave(opened, work, console);
    MapLook look(opened.session, &work.shown());
    const auto progress = [&] { return look.added_to(work.progress()); };
    watch_until_end(call.directory, look, console, signals, progress,
                    [&] { return last_words(opened.session, call, work); });
    const std::int64_t failures = work.run();
    const Progress whole = progress();
    console.show(whole);
    // Closed, it would be complete, and the same command would run everything again.
    const int error = work.uncopied() ? NO_ERROR : d_pool_close_ses(&this_pool(), opened.session);
    if (error != NO_ERROR && error != D_E_SESSION_CLOSED)
        console.give_up(call_failure("session " + std::to_string(opened.session) + " was not closed", error),
                        call.format, exits::map_failed);
    console.keep_bar();
    tell_changed(opened, plan, options.files, files(plan.inputs.size()), console);
    conclude(work, plan, options.files, opened, failures, whole, console);
    std::_Exit(
        exit_for_failed(failures + work.lost()));  // the watching threads still look at this frame; outputs are flushed
}

}  // namespace

extern const Verb map_verb = {
    .noun = "",
    .name = "map",
    .words = "[--] CMD [WORD...] [::: ARG...]",
    .summary = "run a command on many inputs, a grain for each",
    .about = R"(Runs a command once for each input, each time as a grain of the pool, and prints the outputs in the
order of the inputs.

Examples:
  seq 100 | dcs map -- factor {}
  dcs map -a files.txt -- sh -c 'gzip -9 <"$1" >"$1.gz"' sh {}
  dcs map -- md5sum {} ::: *.iso
  find . -name '*.c' -print0 | dcs map --null -- wc -l {}
  dcs map --file in={} --output out=sorted/{/} -- sort -o out in ::: data/*
  dcs map --detach --label night -a files.txt -- ./convert {}
)",
    .options = with_demands(with_start(
        {{"arg-file", 'a', "FILE", any_text,
          "one input per line of FILE (default: of standard input), which is read to its end before grains start;\n"
          "::: ARG... gives them directly; of several FILEs each combination is an input, as of :::: FILE...",
          "Inputs, files and output", Given::many},
         {"null", '0', nullptr, no_value, "inputs end in NUL bytes instead of newlines"},
         {"colsep", 0, "REGEX", some_text, "inputs are columns with REGEX between them: {1}, {2} and so on"},
         {"max-args", 'n', "N", whole_number(1, 2000),
          "each grain gets N inputs (the last one what remains): as {1}, {2} and so on, and where a word is {}, or at\n"
          "the end, as words: work of less than a second runs faster together"},
         {"file", 0, "[NAME=]PATH", any_text,
          "put this file into the directory of each grain, under its own name or NAME; {} as in CMD", "", Given::many},
         {"input", 0, "PATH", some_text,
          "this file is the standard input of each grain (default: empty); {} as in CMD"},
         {"output", 0, "NAME=PATH", any_text,
          "a file that CMD makes in the grain's directory; it is copied to PATH, in which {} or {#} tells the\n"
          "grains apart; missing directories are made",
          "", Given::many},
         {"bring", 0, nullptr, no_value, "CMD's file is copied to hosts that lack it or have a different one"},
         image_option(),
         {"results", 0, "DIR", some_text,
          "outputs go to DIR/NUMBER.out, and DIR/NUMBER.err if there are any; a DIR in which another map, or anything\n"
          "else, has made such files is refused"},
         {"jobs", 'j', "N", any_text, "at most N grains at a time (default: as many as there are free slots)"},
         {"tag", 0, nullptr, no_value, "each line of the outputs begins with its input and a tab"},
         {"joblog", 0, "FILE", any_text, "a line for each grain as it finishes, as GNU parallel writes it"},
         {"progress", 0, "HOW", one_of("bar|plain|json|none|automatic"),
          "what is shown on standard error: bar (default on a terminal), plain (a line at each 10 % and\n"
          "each minute of runs over 30 s; default elsewhere), json (such lines as JSON), none"},
         {"session", 0, "N", some_text,
          "use this session, by its number or last: continue it or, if it is complete, print its outputs again",
          "The session"},
         {"new", 0, nullptr, no_value, "start over, regardless of earlier runs"},
         {"replay", 0, nullptr, no_value, "run nothing: print the outputs of the last run, which is complete, again"},
         {"resume-failed", 0, nullptr, no_value,
          "grains that failed in an earlier run of the same map run again, whatever has changed"},
         {"keep-order", 'k', nullptr, no_value, "nothing: outputs are in the order of the inputs",
          "As in GNU parallel"},
         {"max-procs", 'P', "N", any_text, "as --jobs"},
         {"retries", 0, "N", whole_number(1, 255), "as --attempts"},
         {"timeout", 0, "LIMIT", seconds_from(1, 2e9), "as --time"},
         {"workdir", 0, "DIR", some_text, "as --cwd, and so --wd"},
         {"wd", 0, "DIR", some_text, "as --cwd"},
         {"bar", 0, nullptr, no_value, "as --progress bar, and so --eta"},
         {"eta", 0, nullptr, no_value, "as --progress bar"}})),
    .notes = R"(In the words of CMD {} is replaced by the input, {.} by the input without its extension, {/} by its
last path component, {//} by its directory, {/.} by its last component without extension, {#} by its number, from 1
on. Without any of them, there or in --file or --input, the input is
appended. Several ::: make an input of each combination, the last list varying
first; :::+ takes its list in step with the one before; :::: takes files of inputs. Then, and with --colsep, {1}, {2},
{2.}, {-1/} are columns. CMD is not passed through a shell. Grains run in the current
directory (with --file each in a separate one).

The same command in the same directory with the same inputs is the same map. Run again after an interruption
(Ctrl-C, kill -9, a reboot), it continues in its session until all output is written. A complete map starts
over; if grains failed and no file has changed since, only those run again, and the other outputs come from
the record. If the list of inputs has grown at its end, what maps of the shorter list have finished with
success or still run does not run again, unless a file or the environment has changed. Standard error says
which case applies. While a map runs, the same map is refused on this host. Results stay until `dcs session clean N`.
With another --env, --file or --input it is another map, unless --session names one. With other
demands and limits (--time, --memory, --cores and so on), and in another environment, it is the same map, too:
grains that failed or have not started take what is new, and standard error names the variables. Keep all other
options except those about the session.

A map compares files: the program, and words of CMD (also behind =) and inputs that are paths of regular files (the
first 10,000 inputs; by content up to 16 MiB each and 64 MiB in total, otherwise by size and time). If a file that CMD
names has changed, or an input after its grain had succeeded, an interrupted map does not run, and says which option
continues it or starts it over.

Grains get the environment, except variables that differ between terminals and mean nothing to a
program (_ OLDPWD SHLVL LINES COLUMNS WINDOWID SSH_* DBUS_* XDG_SESSION_* and the like); PWD is the directory.

Exit code: 0 all succeeded, 1-100 so many failed, 101 more than 100 failed, 255 DCS itself failed. A grain
without one of its outputs (--output) has failed.
)",
    .run = map,
    .command_follows = true,
    .failure_exit = exits::map_failed,
    .formats = false};

}  // namespace dcs::commands
