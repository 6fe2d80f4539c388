// dcs run: one grain from a command; an ordinary control program over dcs.h.
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <optional>
#include <set>
#include <thread>

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "commands/dcs/query/grains.h"
#include "base/clock.h"
#include "base/text.h"
#include "commands/dcs/frame/call.h"
#include "demand_options.h"
#include "commands/dcs/frame/ending_signals.h"
#include "commands/dcs/query/row_text.h"
#include "file_options.h"
#include "fresh_session.h"
#include "caller_environment.h"
#include "placeholders.h"
#include "commands/dcs/query/live_output.h"
#include "commands/dcs/frame/pool_directory.h"
#include "commands/dcs/frame/table.h"
#include "commands/dcs/query/why_waiting.h"

extern char **environ;

namespace dcs::commands {
namespace {

constexpr int grain_number = 1;
constexpr int end_patience_s = 5;
constexpr int watch_s = 5;
constexpr int quiet_input_ms = 2000;
constexpr int given_up = 125;  // the standard error of such a grain says why, as with 126

struct Command : GrainTexts {
    std::vector<std::string> environment;
    std::string directory;
    wire::Demands demands;
    bool reads_input = true;
};

Failure own_failure(const Failure &from, int exit) {
    Failure failure = from;
    failure.exit = exit;
    return failure;
}

// As after `read` in a loop, which then has no second turn.
void tell_if_rest() {
    struct stat st = {};
    const off_t at = ::lseek(STDIN_FILENO, 0, SEEK_CUR);
    if (at > 0 && ::fstat(STDIN_FILENO, &st) == 0 && S_ISREG(st.st_mode) && at < st.st_size)
        std::fprintf(
            stderr,
            "dcs run: warning: the command gets all that is left of standard input, %lld of %lld bytes; a loop "
            "`while read ...` needs -n\n",
            static_cast<long long>(st.st_size - at), static_cast<long long>(st.st_size));
}

// Read to its end when the grain is submitted. A terminal is not read: the user would not see that dcs waits for
// it; closed by the caller, which clean_start() opens for writing only, is as good as empty.
int input_descriptor() {
    const int flags = ::fcntl(STDIN_FILENO, F_GETFL);
    if (::isatty(STDIN_FILENO) == 1 || flags < 0 || (flags & O_ACCMODE) == O_WRONLY) return -1;
    tell_if_rest();
    pollfd input{STDIN_FILENO, POLLIN, 0};
    if (::poll(&input, 1, quiet_input_ms) == 0)
        std::fputs("dcs run: reading standard input to its end; with -n it is not read\n", stderr);
    return STDIN_FILENO;
}

std::optional<Failure> understand(const Call &call, Command &command) {
    if (call.arguments.words.empty())
        return usage_failure("dcs run: CMD is missing",
                             "dcs run -- CMD [ARG...], for example dcs run -- sort -n <numbers");
    if (auto failure = take_demands(call.arguments, command.demands)) return failure;
    const auto directory = start_directory(call);
    if (!directory) {
        Failure failure = failure_of("", directory.status());
        if (call.arguments.has("cwd")) failure.exit = exits::not_executable;
        return failure;
    }
    command.directory = *directory;
    command.words = call.arguments.words;
    command.reads_input = !call.arguments.has("no-input");
    command.label = label_of(command.words, 60);
    if (auto failure = take_file_words(call.arguments, command.files)) return failure;
    const auto program = program_of(command.files, call.arguments.has("bring"), command.words[0], *directory);
    if (!program) {
        Failure failure = failure_of("dcs run", program.status());
        if (is_shell_text(command.words[0]))
            failure.hint = "dcs run starts programs without a shell: dcs run -- " + through_a_shell(command.words[0]);
        else if (!command.reads_input && number_of(command.words[0], 0, INT32_MAX))  // as of srun
            failure.hint =
                "-n is --no-input and takes no number; `dcs map -- CMD ::: ARG...` runs a command several times";
        return own_failure(failure, program.status().code == Code::refused ? exits::not_executable : exits::no_program);
    }
    command.words[0] = *program;
    if (const std::string lost = batch_lines_of(*program); !lost.empty())
        std::fprintf(stderr, "dcs run: warning: %s\n", lost.c_str());
    command.environment = whole_environment(environ, call.directory);
    add_umask(command.environment);
    if (auto failure = set_variables(call.arguments, *directory, command.environment)) return failure;
    if (auto failure = describe_session(call.arguments)) return failure;
    if (call.arguments.has("bring")) command.files.program = *program;
    return std::nullopt;
}

// A reader that closes the pipe is not an error.
Status copy(FILE *from, FILE *to) {
    Copied copied = copy_stream(from, to);
    if (copied.written && copied.read && std::fflush(to) != 0) copied = {true, false, errno};
    std::fclose(from);
    if (!copied.read) return fail_errno(Code::io_error, "the output cannot be read", copied.error);
    if (copied.written || copied.error == EPIPE) return Status::ok();
    return fail_errno(Code::io_error, "the output cannot be written", copied.error);
}

// Ctrl-C and the like end the grain, then this program. A scheduler that is away must not keep it:
// a second signal or a few seconds end the waiting, and the session stays.
// So does a reader of the shown output that is gone, for which this process sends itself SIGPIPE.
void obey_signals(sigset_t signals, const std::atomic<int> &opened, std::atomic<bool> &ending) {
    int number = 0;
    ::sigaddset(&signals, SIGPIPE);
    while (::sigwait(&signals, &number) != 0) {}
    ::sigdelset(&signals, SIGPIPE);
    if (ending.exchange(true)) return;  // everything is over anyway
    const int session = opened.load();
    if (session == 0) std::fprintf(stderr, "dcs run: interrupted: nothing was submitted\n");
    if (session == 0) end_by(number);
    std::thread([session, number] {
        const bool killed = d_pool_gkill(&this_pool(), session, grain_number) == NO_ERROR;
        end_session(session);
        if (killed && number != SIGPIPE) std::fprintf(stderr, "dcs run: interrupted: the grain was killed\n");
        end_by(number);
    }).detach();
    // One press may come as several signals, as from timeout(1), which signals its child and then its group.
    const Instant began = boot_clock(), end = began + seconds(end_patience_s);
    for (Instant now = began; now < end; now = boot_clock()) {
        const Duration left = end - now;
        const timespec limit = {left.ns / 1'000'000'000, left.ns % 1'000'000'000};
        if (::sigtimedwait(&signals, nullptr, &limit) > 0 && boot_clock() > began + seconds(1)) break;
    }
    std::fprintf(stderr,
                 "dcs run: the scheduler does not answer, so the grain of session %d may keep running; "
                 "`dcs session close %d` ends it\n",
                 session, session);
    end_by(number);
}

// No host can start the program: the hosts' reasons are more useful than the fact. As in a shell, a program that
// is there and cannot be executed is 126. The session does not stay, so `dcs grain explain` would come too late.
Failure cannot_run(int session, const std::string &text) {
    Failure failure = call_failure("the grain's result", D_E_CANNOT_RUN);
    failure.exit = exits::not_executable;
    const auto grain = grain_now("", session, grain_number);
    const std::vector<std::string> lines = grain ? failed_starts(*grain) : std::vector<std::string>();
    const auto why = lines.empty() ? explain("", session, grain_number) : fail(Code::not_found, "");
    failure.hint = why ? advice_of(*why) : "";
    failure.message =
        lines.empty() ? "the command was not run: " + none_can_text(why, text) : "no host could start the command";
    for (const std::string &line : lines) failure.message += (&line == &lines[0] ? ": on " : "; on ") + line;
    return failure;
}

// Says when the grain came back from a host: DCS starts it again by itself, which is not seen otherwise.
void tell_of_returns(int session, const std::atomic<bool> &ending) {
    unsigned told = 0;
    for (;;) {
        pause_ms(watch_s * 1000);
        if (ending.load()) return;
        const auto grain = grain_now("", session, grain_number);
        for (const wire::MoveRow &move : grain ? grain->moves : std::vector<wire::MoveRow>()) {
            if (ending.load()) return;
            if (move.incarnation <= told) continue;
            told = move.incarnation;
            const std::string &reason = move.reason;
            if (reason == "given_back" || reason == "start_failed" || reason == "gap")
                std::fprintf(stderr, "dcs run: %s: %s; it is started again automatically (`dcs grain show %d:%d`)\n",
                             printable(move.host).c_str(), printable(move.detail).c_str(), session, grain_number);
        }
    }
}

// Of a limit standard error has a line; of a grain that came back too often the scheduler knows the words.
void tell_why_ended(int session, const d_result &end) {
    const auto grain = grain_now("", session, grain_number);
    if (grain && !grain->moves.empty()) {
        const wire::MoveRow &last = grain->moves.back();
        const bool gave_up =
            last.reason == "given_up" && end.retcode != given_up && end.retcode != exits::not_executable;
        if (last.reason == "over_limit") return;
        if (gave_up) {
            std::fprintf(stderr, "dcs run: the grain was ended on %s: %s\n", printable(last.host).c_str(),
                         printable(last.detail).c_str());
            return;
        }
    }
    if (end.termsig != 0 && end.termsig != SIGINT && end.termsig != SIGPIPE)  // as in a shell
        std::fprintf(stderr, "dcs run: the command was ended by signal %d (%s)\n", end.termsig,
                     ::strsignal(end.termsig));
}

// There is no result, and none will come. What other commands did to the grain or its session is said in their words.
Failure no_result(int session, int error, const std::string &why) {
    if (error == D_E_CANNOT_RUN) return cannot_run(session, why);
    Failure failure = call_failure("the grain's result", error);
    if (error == D_E_NOTHING_LEFT)
        failure.message = "the grain was killed by another command (dcs grain kill), so it has no result";
    else if (error == D_E_SESSION_CLOSED || error == D_E_SESSION_UNKNOWN || error == D_E_SESSION_TAKEN)
        failure.message = "session " + std::to_string(session) +
                          ", in which the grain ran, was ended by another command, so it has no result";
    else return failure;
    failure.hint = "";
    return failure;
}

// As it is written, if that is asked for or people look.
bool shows_live(const Arguments &said) {
    return said.has("live") || (!said.has("no-live") && ::isatty(STDOUT_FILENO) == 1);
}

int wait_for_end(const Call &call, int session, const FileWords &files, std::atomic<bool> &ending) {
    d_result result;
    d_result_init(&result, 1);
    FILE *out = nullptr, *err = nullptr;
    // Its threads go on to the end of the process.
    Waiting &waiting = *new Waiting("dcs run", session, grain_number, call.directory);
    waiting.start();
    std::optional<ShownOutput> shown;
    if (shows_live(call.arguments)) shown.emplace(session, grain_number, [] { ::kill(::getpid(), SIGPIPE); }).start();
    const int error = d_pool_gwait_streams(&this_pool(), D_BLOCK, session, &result, &out, &err);
    const std::string why = d_errortext();  // of the call; what is asked after it has words of its own
    waiting.stop();
    if (shown) shown->stop();
    if (ending.load()) ::pause();  // the signal thread ends this process
    if (error != NO_ERROR) {
        const Failure failure = no_result(session, error, why);
        if (ending.exchange(true)) ::pause();
        if (error == D_E_CANNOT_RUN) d_pool_gkill(&this_pool(), session, grain_number);
        if (exit_of(error) != exits::unreachable) end_session(session);
        const bool as_ssh = call.failure_exit != exits::run_failed;
        if (!as_ssh && failure.exit == exits::not_executable) return report(failure, call.format);
        return call.fail(failure);
    }
    Status copied = shown ? shown->finish() : copy(out, stdout);
    if (Status s = shown ? Status::ok() : copy(err, stderr); copied) copied = s;
    std::optional<Failure> lost;
    bool kept = !copied;  // the pool has what could not be written here
    for (const FileWords::Pair &output : files.outputs)
        if (auto failure = write_output(session, result.grain_num, output)) {
            if (lost) report(*lost, call.format);
            lost = failure;
            kept = kept || failure->exit != exits::not_found;
        }
    if (result.termsig != 0 || result.retcode != 0) tell_why_ended(session, result);
    if (ending.exchange(true)) ::pause();
    if (kept) keep_session(session, grain_number);
    else end_session(session);
    if (lost) report(*lost, call.format);
    if (!copied) return call.fail(failure_of("", copied));
    if (result.termsig != 0) return 128 + result.termsig;
    return lost && result.retcode == 0 ? exits::run_failed : result.retcode;
}

// The session stays, with all that comes of the grain.
[[noreturn]] void leave(int session, const std::vector<FileWords::Pair> &outputs) {
    std::printf("%d\n", session);
    std::fprintf(stderr,
                 "dcs run: session %d is submitted; `dcs session wait %d` waits for it, `dcs session cat %d` "
                 "prints its output\n",
                 session, session, session);
    for (const FileWords::Pair &output : outputs)
        std::fprintf(stderr, "dcs run: %s stays in the pool; `dcs grain cat --file %s %d:%d >%s` copies it\n",
                     printable(output.name).c_str(), printable(shell_word(output.name)).c_str(), session, grain_number,
                     printable(shell_word(output.path)).c_str());
    tell_if_none_can("dcs run", session, grain_number);
    std::_Exit(std::fflush(stdout) == 0 ? exits::ok : exits::run_failed);
}

int run(const Call &call) {
    Command command;
    if (const auto failure = understand(call, command)) {
        report(*failure, call.format);
        return failure->exit >= exits::run_failed && failure->exit <= exits::no_program ? failure->exit
                                                                                        : exits::run_failed;
    }
    if (call.arguments.has("dry-run")) {
        std::printf("%s\n", shell_line(command.words).c_str());
        return exits::ok;
    }
    std::set<std::string> directories;
    if (const auto failure = check_places(command.files, directories)) {
        report(*failure, call.format);
        return exits::run_failed;
    }
    set_patience(begin_patience_s);
    static const sigset_t signals = block_ending_signals();  // static: the signal thread may outlive run()
    static std::atomic<int> session{0};
    static std::atomic<bool> ending{false};
    sigset_t of_pipe;
    ::sigemptyset(&of_pipe);
    ::sigaddset(&of_pipe, SIGPIPE);
    ::pthread_sigmask(SIG_BLOCK, &of_pipe, nullptr);
    std::thread([] { obey_signals(signals, session, ending); }).detach();
    ::signal(SIGXFSZ, SIG_IGN);

    const bool detach = call.arguments.has("detach");
    const OpenedSession opened =
        open_fresh_session((detach ? detached_ident : "dcs-run-") + std::to_string(::getpid()) + "-" + random_suffix());
    if (opened.failure) return call.fail(*opened.failure);
    session = opened.number;
    work_patiently();
    if (!detach) std::thread([number = opened.number] { tell_of_returns(number, ending); }).detach();

    const std::vector<char *> environment = pointers_to(command.environment);
    d_grain grain;
    d_grain_init(&grain);
    grain.input_fd = command.reads_input ? input_descriptor() : -1;
    command.put_into(grain, environment, command.demands, command.directory);
    const int error = d_pool_gexec_grain(&this_pool(), opened.number, grain_number, &grain);
    if (error != NO_ERROR) {
        const Failure failure = call_failure("the grain was not submitted", error);
        if (ending.exchange(true)) ::pause();
        end_session(opened.number);
        return call.fail(failure);
    }
    if (detach) leave(opened.number, command.files.outputs);
    const int exit = wait_for_end(call, opened.number, command.files, ending);
    std::fflush(stdout);
    std::fflush(stderr);
    std::_Exit(exit);
}

}  // namespace

extern const Verb run_verb = {
    .noun = "",
    .name = "run",
    .words = "[--] CMD [ARG...]",
    .summary = "run one command as a grain",
    .about = R"(Runs one command as a grain of the pool. Standard input, output, error and exit code pass through.

Examples:
  dcs run -- sort -n <numbers >sorted
  dcs run -- make -C /src/project check
  dcs run --class gpu --attempts 3 -- ./simulate 42
  while read x; do dcs run -n -- ./simulate $x; done <list
  dcs run --file table=/data/t7 --output sorted -- sort -o sorted table
  dcs run --image tools.tar -- simulate 42
)",
    .options = with_demands(with_start(
        {{"live", 0, nullptr, no_value,
          "show outputs while CMD writes them (default when standard output is a terminal)", "What is shown"},
         {"no-live", 0, nullptr, no_value, "show whole outputs when CMD has ended"},
         {"no-input", 'n', nullptr, no_value, "do not read standard input, which a loop `while read ...` needs itself",
          "Files"},
         {"file", 0, "[NAME=]PATH", any_text, "put this file into the grain's directory, under its own name or NAME",
          "", Given::many},
         {"output", 0, "NAME[=PATH]", any_text,
          "a file that CMD makes in the grain's directory; after the run it is copied to NAME or PATH", "",
          Given::many},
         {"bring", 0, nullptr, no_value, "CMD's file is copied to hosts that lack it or have a different one"},
         image_option()})),
    .notes = R"(CMD is looked up in PATH and runs in the current directory with the current environment, without a
shell. With --file or --output it runs in a separate directory instead. With --image it is looked up in the image, and
--cwd is a directory there; without --cwd it runs in a separate directory. Standard input is read to its end
first (1 GiB at most; not a terminal, and not with -n). The session of the grain is removed at the end. Ctrl-C and the
end of the terminal kill the grain; a `dcs run` that is killed leaves it running (`dcs session ls`). With --detach it
stays until `dcs session close N` stops it and `clean N` removes it.
A session whose grain has ended is closed when a further one would exceed the policy's sessions_per_user; outputs stay.

Outputs are printed whole when the grain has ended, exactly once. With --live, or if standard output is a terminal,
they are printed as CMD writes them (many programs buffer 4 KiB: use stdbuf -oL CMD or python3 -u), and when their
reader ends (`| head`) the grain is ended, with code 141. If the
grain moves and begins again, standard error says how much of the shown output is void.

While the grain waits, standard error says what comes before it, or that no host may take it.

A grain that comes back from a host is started again automatically; standard error says so.

Exit code: the command's own; 128+N if signal N ended it, so 152 over its time (--time), 137 over its memory, 153 over
its output; 127 no such program; 126 it cannot be executed, or no host can meet its needs (cores, memory, class,
directory, length of arguments); 125 DCS itself failed.
)",
    .run = run,
    .command_follows = true,
    .failure_exit = exits::run_failed,
    .formats = false};

}  // namespace dcs::commands
