// dcs session cat: the outputs of a session, in the order of its grains.
#include <cerrno>
#include <cstdio>
#include <unistd.h>

#include "commands/dcs/frame/call.h"
#include "commands/dcs/frame/table.h"
#include "commands/dcs/frame/this_pool.h"
#include "commands/dcs/query/grains.h"
#include "commands/dcs/query/scheduler.h"
#include "client/call.h"

namespace dcs::commands {
namespace {

struct Outcome {
    std::int64_t failed = 0, waiting = 0;
};

std::string name_of(const wire::GrainRow &row, const Session &session) {
    return session.name() + ":" + std::to_string(row.grain);
}

std::optional<Failure> print_stream(const wire::GrainRow &row, const Session &session, const char *stream, FILE *to) {
    FILE *from = nullptr;
    const std::string what = "the output of grain " + name_of(row, session);
    if (const int error = d_pool_grain_stream(&this_pool(), row.user.c_str(), row.session, row.grain, stream, &from);
        error != NO_ERROR)
        return call_failure(what, error);
    char buffer[65536];
    std::size_t n = 0;
    bool good = true;
    while (good && (n = std::fread(buffer, 1, sizeof buffer, from)) > 0) good = std::fwrite(buffer, 1, n, to) == n;
    const int why = errno;
    const bool read = std::ferror(from) == 0;
    std::fclose(from);
    if (!good) return failure_of("", fail_errno(Code::io_error, "standard output", why));
    if (!read) return failure_of("", fail_errno(Code::io_error, what, why));
    return std::nullopt;
}

bool is_over(const wire::GrainRow &row) { return row.state == "finished" || row.state == "killed"; }

// Of a session that is closed nothing more comes.
std::optional<Failure> wait_for(const Session &session, wire::GrainRow &row) {
    set_patience(away_patience_s);
    if (::isatty(STDERR_FILENO) == 1)
        std::fprintf(stderr, "dcs session cat: waiting for grain %s\n", name_of(row, session).c_str());
    while (!is_over(row)) {
        pause_ms(poll_ms);
        Info info;
        if (const Status s = info.ask(wire::QueryType::grain, row.user, row.session, row.grain); !s)
            return call_failure("grain " + name_of(row, session), s);
        if (info.grains.empty()) return not_found_failure("there is no grain " + name_of(row, session));
        row = info.grains[0];
        const SessionsAnswer now = sessions_of({session.name()});
        if (!now.failed && now.sessions[0].terminated() && !is_over(row)) break;
    }
    return std::nullopt;
}

std::optional<Failure> print_session(const Session &session, bool wait, Outcome &outcome) {
    GrainsAnswer grains = grains_of(session, {});
    if (grains.failed) return grains.failure;
    for (wire::GrainRow &row : grains.rows) {
        if (wait && !is_over(row) && !session.terminated()) {
            if (std::fflush(stdout) != 0) return failure_of("", fail_errno(Code::io_error, "standard output", errno));
            if (auto failure = wait_for(session, row)) return failure;
        }
        outcome.waiting += !is_over(row);
        outcome.failed += is_failed(row);
        if (row.state != "finished") continue;
        for (const auto &[stream, length, to] :
             {std::tuple{"out", row.out_length, stdout}, std::tuple{"err", row.err_length, stderr}})
            if (length > 0)
                if (auto failure = print_stream(row, session, stream, to)) return failure;
    }
    return std::nullopt;
}

int cat_sessions(const Call &call) {
    const SessionsAnswer answer =
        sessions_of(call.arguments.words.empty() ? std::vector<std::string>{"last"} : call.arguments.words);
    if (answer.failed) return call.fail(answer.failure);
    Outcome outcome;
    for (const Session &session : answer.sessions)
        if (const auto failure = print_session(session, call.arguments.has("wait"), outcome))
            return call.fail(*failure);
    if (std::fflush(stdout) != 0)
        return call.fail(failure_of("", fail_errno(Code::io_error, "standard output", errno)));
    if (outcome.waiting > 0)
        std::fprintf(stderr, "dcs session cat: %s %s not finished%s\n", counted(outcome.waiting, "grain").c_str(),
                     outcome.waiting == 1 ? "has" : "have",
                     call.arguments.has("wait") ? "" : "; --wait waits for them");
    return outcome.failed + outcome.waiting > 0 ? exits::grain_failed : exits::ok;
}

}  // namespace

extern const Verb session_cat_verb = {
    .noun = "session",
    .name = "cat",
    .words = "[SEL...]",
    .summary = "print the outputs of a session in order",
    .about = R"(Prints the outputs of the finished grains of sessions, in the order of their numbers, which for
`dcs map` is that of the inputs: standard output to standard output, standard error to standard error.

Examples:
  dcs session cat 7 >results
  dcs session cat last --wait
)",
    .options = {{"wait", 'w', nullptr, {}, "wait for each grain in turn until it has finished, and print them all"}},
    .notes = R"(SEL is NUM, USER/NUM, last (your session that was opened last; the default), all or USER/all.
Exit code: 0 all grains finished with exit code 0; 10 some failed, or have not finished.
)",
    .run = cat_sessions,
    .formats = false};

}  // namespace dcs::commands
