// dcs session log: what became of a session, in order.
#include <cerrno>
#include <cstdio>
#include <ctime>

#include "commands/dcs/frame/call.h"
#include "commands/dcs/query/session_events.h"
#include "commands/dcs/frame/json.h"
#include "commands/dcs/frame/unicode.h"

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
        document.add("schema", "dcs.session.log/1").add("user", session.user).add("session", session.number);
        std::printf("%s\n", document.add_raw("events", json_array(lines)).text().c_str());
    }
    if (std::fflush(stdout) != 0) return fail_errno(Code::io_error, "standard output", errno);
    return s;
}

bool is_over(const Session &session) {
    const SessionsAnswer answer = sessions_of({session.name()});
    return answer.failed ? answer.failure.exit == exits::not_found : answer.sessions[0].terminated();
}

// Ends with the session: asked first, so that its last events are there then.
Status follow(const Call &call, const Session &session, EventSource &source) {
    set_patience(away_patience_s);
    for (;;) {
        const bool over = is_over(session);
        if (Status s = print(call, session, source, false); !s) return s;
        if (over) return Status::ok();
        const timespec pause = {0, poll_ms * 1'000'000};
        ::nanosleep(&pause, nullptr);
    }
}

int log(const Call &call) {
    const SessionsAnswer answer = sessions_of(call.arguments.words);
    if (answer.failed) return call.fail(answer.failure);
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
    .options = {{"follow", 'f', nullptr, {}, "continue until the session is closed"}},
    .notes = R"(SEL is NUM, USER/NUM or last (your session that was opened last). -o json: one document
{"schema":"dcs.session.log/1","user":...,"session":...,"events":[{"time_s":...,"event":...,...}]}; with --follow
another one for each batch of new events. -o name: the kind of each event. `dcs trace` draws them.
)",
    .run = log};

}  // namespace dcs::commands
