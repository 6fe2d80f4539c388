// dcs session log: what became of a session, in order.
// dcs session cat: the outputs of a session, in the order of its grains.
#include <cerrno>
#include <cstdio>
#include <set>
#include <unistd.h>

#include "commands/dcs/frame/call.h"
#include "commands/dcs/query/session_events.h"
#include "commands/dcs/frame/table.h"
#include "commands/dcs/frame/pool_directory.h"
#include "commands/dcs/query/grains.h"
#include "commands/dcs/query/scheduler.h"

namespace dcs::commands {
namespace {

// The events since the last time. `always`: a document even without events.
Status print(const Call &call, const Session &session, EventSource &source, bool always) {
    std::vector<std::string> lines;
    const Status s = source.read([&](const wire::Event &e) {
        if (call.format == Format::json) lines.push_back(wire::to_line(e));
        else if (call.format == Format::name) std::printf("%s\n", wire::name_of(e.kind));
        else std::printf("%s  %s\n", local_time(e.at_ms).c_str(), printable(sentence_of(e)).c_str());
    });
    if (call.format == Format::json && (always || !lines.empty())) {
        JsonObject document;
        document.add("schema", "dcs.session.log/1").add("user", session.user).add("session", session.session);
        std::printf("%s\n", document.add_raw("events", json_array(lines)).text().c_str());
    }
    if (std::fflush(stdout) != 0) return fail_errno(Code::io_error, "standard output", errno);
    return s;
}

bool is_closed_now(const Session &session) {
    const SessionsAnswer answer = sessions_of({session.name()});
    return answer.failure ? answer.failure->exit == exits::not_found : answer.sessions[0].terminated();
}

// Ends with the session: asked first, so that its last events are there then.
Status follow(const Call &call, const Session &session, EventSource &source) {
    set_patience(away_patience_s);
    for (;;) {
        const bool over = is_closed_now(session);
        if (Status s = print(call, session, source, false); !s) return s;
        if (over) return Status::ok();
        pause_ms(poll_ms);
    }
}

int log(const Call &call) {
    const SessionsAnswer answer = sessions_of(call.arguments.words);
    if (answer.failure) return call.fail(*answer.failure);
    if (answer.sessions.size() != 1)
        return call.fail(usage_failure("dcs session log: " + call.arguments.words[0] + " is not one session"));
    const Session &session = answer.sessions[0];
    if (session.damaged())
        return call.fail(
            {exits::error, "io_error", "session " + session.name() + " is damaged", "`dcs doctor` says how"});
    EventSource source(session);
    Status s = print(call, session, source, true);
    if (s && call.arguments.has("follow")) s = follow(call, session, source);
    return s ? exits::ok : call.fail(failure_of("the event log of session " + session.name(), s));
}

struct Outcome {
    std::int64_t failed = 0, killed = 0, waiting = 0, not_run = 0, not_submitted = 0, left_out = 0;
    bool complete() const { return failed + killed + waiting + not_run + not_submitted + left_out == 0; }
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
    const Copied copied = copy_stream(from, to);
    std::fclose(from);
    if (!copied.written) return failure_of("", fail_errno(Code::io_error, "standard output", copied.error));
    if (!copied.read) return failure_of("", fail_errno(Code::io_error, what, copied.error));
    return std::nullopt;
}

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
        if (!now.failure && now.sessions[0].terminated() && !is_over(row)) break;
    }
    return std::nullopt;
}

std::optional<Failure> print_grain(const wire::GrainRow &row, const Session &session, Outcome &outcome) {
    outcome.killed += row.state == "killed";
    (session.terminated() ? outcome.not_run : outcome.waiting) += !is_over(row);
    outcome.failed += is_failed(row);
    if (row.state != "finished") return std::nullopt;
    for (const auto &[stream, length, to] :
         {std::tuple{"out", row.out_length, stdout}, std::tuple{"err", row.err_length, stderr}})
        if (length > 0)
            if (auto failure = print_stream(row, session, stream, to)) return failure;
    return std::nullopt;
}

// With `wait` until the last one is submitted, or the command that submits has ended: the later ones come after the
// others.
std::optional<Failure> print_session(Session session, bool wait, Outcome &outcome) {
    std::set<std::int32_t> printed;
    for (int quiet = 0;;) {
        GrainsAnswer grains = grains_of(session, {});
        if (grains.failure) return grains.failure;
        for (wire::GrainRow &row : grains.rows) {
            if (!printed.insert(row.grain).second) continue;
            quiet = 0;
            if (wait && !is_over(row) && !session.terminated()) {
                if (std::fflush(stdout) != 0)
                    return failure_of("", fail_errno(Code::io_error, "standard output", errno));
                if (auto failure = wait_for(session, row)) return failure;
            }
            if (auto failure = print_grain(row, session, outcome)) return failure;
        }
        // As of before they were listed.
        if (!wait || session.terminated() || session.not_submitted() == 0 || ++quiet > quiet_looks) break;
        pause_ms(poll_ms);
        SessionsAnswer now = sessions_of({session.name()});
        if (now.failure) return now.failure;
        session = std::move(now.sessions[0]);
    }
    (session.terminated() ? outcome.left_out : outcome.not_submitted) += session.not_submitted();
    return std::nullopt;
}

void tell(const Outcome &outcome, bool waited) {
    const auto say = [](std::int64_t count, const char *one, const char *many, const char *rest) {
        if (count > 0)
            std::fprintf(stderr, "dcs session cat: %s %s%s\n", counted(count, "grain").c_str(), count == 1 ? one : many,
                         rest);
    };
    say(outcome.killed, "was killed", "were killed", "");
    say(outcome.not_run, "did not run", "did not run", ": the session was closed before");
    say(outcome.left_out, "was not submitted", "were not submitted",
        ": a grain that comes before failed, or the session was closed");
    say(outcome.waiting, "has not finished", "have not finished", waited ? "" : "; --wait waits for them");
    say(outcome.not_submitted, "has not been submitted", "have not been submitted",
        waited ? ": the command that submits them has ended; the same command continues" : "; --wait waits for them");
}

int cat_sessions(const Call &call) {
    const SessionsAnswer answer =
        sessions_of(call.arguments.words.empty() ? std::vector<std::string>{"last"} : call.arguments.words);
    if (answer.failure) return call.fail(*answer.failure);
    Outcome outcome;
    for (const Session &session : answer.sessions)
        if (const auto failure = print_session(session, call.arguments.has("wait"), outcome))
            return call.fail(*failure);
    if (std::fflush(stdout) != 0)
        return call.fail(failure_of("", fail_errno(Code::io_error, "standard output", errno)));
    tell(outcome, call.arguments.has("wait"));
    return outcome.complete() ? exits::ok : exits::grain_failed;
}

}  // namespace

extern const Verb session_log_verb = {
    .noun = "session",
    .name = "log",
    .words = "SEL",
    .summary = "print a session's events in order",
    .about = R"(Prints the event log of a session: submissions, starts, checkpoints, moves and ends of its grains;
which results the control program took and when, and the output that it read before a grain had finished; and
the starts of the control program. The order is exact; times are those of the scheduler's clock.

Examples:
  dcs session log last
  dcs session log 7 --follow
  dcs session log 7 -o json | jq '.events[] | select(.event == "left")'
)",
    .options = {{"follow", 'f', nullptr, no_value, "continue until the session is closed"}},
    .notes = R"(SEL is NUM, USER/NUM or last (your session that was opened last). -o json: one document
{"schema":"dcs.session.log/1","user":...,"session":...,"events":[{"time_s":...,"event":...,...}]}; with --follow
another one for each batch of new events. -o name: the kind of each event. `dcs trace` draws them.
)",
    .run = log};

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
    .options = {{"wait", 'w', nullptr, no_value,
                 "wait for each grain in turn until it has finished, and print them all"}},
    .notes = R"(SEL is NUM, USER/NUM, last (your session that was opened last; the default), all or USER/all.
Exit code: 0 all grains finished with exit code 0; 10 some failed, were killed, have not finished, or have not
been submitted by `dcs submit`.
)",
    .run = cat_sessions,
    .formats = false};

}  // namespace dcs::commands
