// dcs session ls, show, set, close.
#include <algorithm>
#include <cstdio>
#include <ctime>
#include <unistd.h>

#include "commands/dcs/query/scheduler.h"
#include "commands/dcs/frame/call.h"
#include "commands/dcs/frame/table.h"
#include "commands/dcs/frame/pool_directory.h"

namespace dcs::commands {
namespace {

std::vector<std::string> selectors_or(const Call &call, const char *when_none) {
    if (!call.arguments.words.empty()) return call.arguments.words;
    return {when_none};
}

void print_names(const std::vector<Session> &sessions) {
    for (const Session &session : sessions) std::printf("%s\n", session.name().c_str());
}

constexpr std::size_t command_columns = 60;

// From its beginning to the last end of a grain, or until now.
double took_s(const Session &s) {
    if (s.submitted_s <= 0) return -1;
    const bool runs = s.ready + s.running > 0 && !s.terminated();
    const double until = runs ? static_cast<double>(std::time(nullptr)) : s.settled_s;
    return until <= 0 ? -1 : std::max(0.0, until - s.submitted_s);
}

// In a closed session grains that did not run wait for nothing.
int ready_in(const Session &s) { return s.terminated() ? 0 : s.ready; }

// Who takes most of the scheduler's disk comes first.
void print_stored(std::vector<wire::StoredRow> rows) {
    const auto all = [](const wire::StoredRow &r) { return r.sessions_bytes + r.contents_bytes; };
    std::sort(rows.begin(), rows.end(), [&](const auto &a, const auto &b) { return all(a) > all(b); });
    for (const wire::StoredRow &row : rows)
        std::printf("%s stores %s: %s of sessions, %s of programs and files\n", printable(row.user).c_str(),
                    bytes_text(all(row)).c_str(), bytes_text(row.sessions_bytes).c_str(),
                    bytes_text(row.contents_bytes).c_str());
}

void print_table(const SessionsAnswer &answer, bool own) {
    const std::vector<Session> &sessions = answer.sessions;
    Table table{">SESSION", "*STATE",    "SUBMITTED", ">TIME",   ">READY",
                ">RUNNING", ">FINISHED", ">KILLED",   ">STORED", "COMMAND"};
    long long ready = 0, running = 0, finished = 0, failed = 0, killed = 0, damaged = 0, cut = 0;
    for (const Session &s : sessions) {
        table.add({s.name(), s.shown_state() + (s.nice > 0 ? ", nice" : ""), time_text(s.submitted_s),
                   seconds_text(took_s(s)), std::to_string(ready_in(s)), std::to_string(s.running),
                   std::to_string(s.finished) + (s.failed > 0 ? " (" + std::to_string(s.failed) + " failed)" : ""),
                   std::to_string(s.killed), bytes_text(s.stored_bytes), s.what(command_columns)});
        damaged += s.damaged();
        ready += ready_in(s);
        running += s.running;
        finished += s.finished;
        failed += s.failed;
        killed += s.killed;
        cut += s.did_not_finish();
    }
    if (!sessions.empty()) std::printf("%s\n", table.text().c_str());
    std::printf("%s, %s; grains: %lld ready, %lld running, %lld finished (%lld failed), %lld killed%s\n",
                counted(sessions.size(), "session").c_str(), open_sessions_text(sessions).c_str(), ready, running,
                finished, failed, killed, cut == 0 ? "" : (", " + std::to_string(cut) + " did not finish").c_str());
    print_stored(answer.stored);
    if (sessions.empty() && own) std::printf("`dcs session ls all` lists those of all users\n");
    if (damaged > 0) std::printf("%lld damaged: `dcs doctor` says more\n", damaged);
}

int list_sessions(const Call &call) {
    SessionsAnswer answer = call.arguments.words.empty() ? own_sessions() : sessions_of(call.arguments.words);
    if (answer.failure) return call.fail(*answer.failure);
    if (auto state = call.arguments.value("state")) {
        if (*state == "closed") state = "terminated";
        std::erase_if(answer.sessions,
                      [&](const Session &s) { return s.state != *state && s.shown_state() != *state; });
    }
    if (const auto label = call.arguments.value("label"))
        std::erase_if(answer.sessions, [&](const Session &s) { return s.label != *label; });
    if (call.format == Format::json) {
        JsonObject json("dcs.session.list/1");
        json.add_list("sessions", answer.sessions, row_json).add_list("stored", answer.stored, row_json);
        std::printf("%s\n", json.text().c_str());
    } else if (call.format == Format::name) {
        print_names(answer.sessions);
    } else {
        print_table(answer, call.arguments.words.empty());
    }
    return exits::ok;
}

void print_one(const Session &s, bool first) {
    std::printf("%ssession   %s\n", first ? "" : "\n", s.name().c_str());
    if (!s.label.empty()) std::printf("label     %s\n", printable(s.label).c_str());
    if (!s.command.empty()) std::printf("command   %s\n", printable(s.command).c_str());
    std::printf("ident     %s\nstate     %s\n", s.ident.c_str(), s.shown_state().c_str());
    if (s.nice > 0) std::printf("nice      %d\n", s.nice);
    if (s.submitted_s > 0)
        std::printf("submitted %s, time %s\n", time_text(s.submitted_s).c_str(), seconds_text(took_s(s)).c_str());
    const int missing = s.not_submitted();
    std::printf("grains    %d %s, %d running, %d finished (%d failed), %d killed\n",
                s.terminated() ? s.did_not_finish() : s.ready, s.terminated() ? "did not finish" : "ready", s.running,
                s.finished, s.failed, s.killed);
    if (missing > 0 && !s.terminated())
        std::printf(
            "missing   %s not yet submitted; where the command that submits them has ended, the same one continues\n",
            counted(missing, "grain").c_str());
    if (const std::string log = s.submit_log(); !log.empty() && s.failed + s.killed + missing > 0)
        std::printf("log       %s, where `dcs submit` says what failed or does not run, and why\n", log.c_str());
    if (s.stuck > 0)
        std::printf("stuck     %s that no host can take; `dcs doctor` says why\n", counted(s.stuck, "grain").c_str());
    std::printf("sent      %s\n", counted(s.sent, "result").c_str());
    std::printf("stored    %s on the scheduler's disk\n", bytes_text(s.stored_bytes).c_str());
    if (s.saved_cpu_s > 0)
        std::printf("saved     %s of CPU time, which grains did not spend again thanks to checkpoints\n",
                    seconds_text(s.saved_cpu_s).c_str());
}

int show_session(const Call &call) {
    const SessionsAnswer answer = sessions_of(selectors_or(call, "last"));
    if (answer.failure) return call.fail(*answer.failure);
    if (call.format == Format::name) {
        print_names(answer.sessions);
        return exits::ok;
    }
    for (const Session &listed : answer.sessions) {
        const SessionsAnswer alone = sessions_of({listed.name()});
        const Session &session = alone.sessions.size() == 1 ? alone.sessions[0] : listed;
        if (call.format == Format::json) print_document("dcs.session.show/1", "session", wire::to_json(session));
        else print_one(session, &listed == &answer.sessions[0]);
    }
    return exits::ok;
}

// Several at once may be more than was meant.
bool may_close(const Call &call, const std::vector<Session> &sessions) {
    int unfinished = 0;
    for (const Session &s : sessions) unfinished += ready_in(s) + s.running;
    if (sessions.size() < 2 || unfinished == 0 || call.arguments.has("yes") || ::isatty(STDIN_FILENO) != 1) return true;
    return says_yes("Close " + counted(sessions.size(), "session") + ", and end " + counted(unfinished, "grain") + "?");
}

std::string ended_now(std::int64_t running) {
    return counted(running, "running grain") + (running == 1 ? " gets" : " get") + " SIGTERM, and SIGKILL after 10 s";
}

int close(const Call &call) {
    const SessionsAnswer answer = chosen_sessions(call.arguments.words);
    if (answer.failure) return call.fail(*answer.failure);
    if (answer.sessions.empty()) say_none(call, "closed");
    if (!may_close(call, answer.sessions)) return call.fail({exits::error, "cancelled", "nothing was closed", ""});
    Listing closed(call, "dcs.session.close/1", "closed");
    for (const Session &session : answer.sessions) {
        if (session.damaged())
            return call.fail({exits::error, "io_error", "session " + session.name() + " is damaged",
                              "`dcs doctor` says how, `dcs session clean` removes it"});
        int error = session.terminated() ? D_E_SESSION_CLOSED
                                         : d_pool_close_ses_of(&this_pool(), session.user.c_str(), session.session);
        if (error != NO_ERROR && error != D_E_SESSION_CLOSED)
            return call.fail(call_failure("session " + session.name() + " was not closed", error));
        closed.add(session.name(), "session " + session.name() +
                                       (error != NO_ERROR     ? " was already closed"
                                        : session.running > 0 ? " closed; " + ended_now(session.running)
                                                              : " closed"));
    }
    return closed.end();
}

int set(const Call &call) {
    const auto nice = call.arguments.number("nice");
    const auto label = call.arguments.value("label");
    if (!nice && !label) return call.fail(usage_failure("dcs session set: give --nice N, --label TEXT, or both"));
    const SessionsAnswer answer = chosen_sessions(call.arguments.words);
    if (answer.failure) return call.fail(*answer.failure);
    Listing changed(call, "dcs.session.set/1", "changed");
    for (const Session &session : answer.sessions) {
        wire::SetSession order{session.user, session.session};
        if (nice) order.nice = static_cast<std::int32_t>(*nice);
        order.set_label = label.has_value();
        order.label = label.value_or("");
        if (Status s = ask_any<wire::Done>(order).status(); !s)
            return call.fail(call_failure("session " + session.name() + " was not changed", s));
        changed.add(session.name(), "session " + session.name() + " changed");
    }
    return changed.end();
}

}  // namespace

extern const Verb session_ls_verb = {
    .noun = "session",
    .name = "ls",
    .words = "[SEL...]",
    .summary = "list sessions",
    .about = R"(Lists sessions, yours or those that the selectors name: command line, label, time of submission,
duration, number of grains by state (FINISHED counts those that failed, too), and what each takes on the
scheduler's disk; then what their users store there, the largest first. A session of dcs map, run or submit that is
not closed but has nothing left to do is shown as done; for -o json it is active.

Examples:
  dcs session ls
  dcs session ls all                    of all users whose sessions you may see
  dcs session ls --state active         those that are not closed
  dcs session close $(dcs session ls --label night -o name)
  dcs session ls -o json | jq '.sessions[] | select(.failed > 0).session'
  dcs session ls all -o json | jq '.sessions | max_by(.stored_bytes)'
)",
    .options = {{"state", 0, "STATE", one_of("active|done|terminated|closed|damaged"),
                 "active, done (active without work), terminated (closed is the same), or damaged"},
                {"label", 0, "TEXT", any_text, "those with this label"}},
    .notes = R"(SEL is NUM, USER/NUM, last (your session that was opened last), USER/last, done, all or USER/all.
An empty list is not an error.
)",
    .run = list_sessions};

extern const Verb session_show_verb = {
    .noun = "session",
    .name = "show",
    .words = "[SEL...]",
    .summary = "show one session",
    .about = R"(Shows sessions: owner, ident, state and how many grains are in which state.

Examples:
  dcs session show            the last one
  dcs session show 7 -o json
)",
    .notes = R"(SEL is NUM, USER/NUM, last (your session that was opened last) or all.
)",
    .run = show_session};

extern const Verb session_set_verb = {
    .noun = "session",
    .name = "set",
    .words = "SEL...",
    .summary = "change a session's label or niceness",
    .about = R"(Changes sessions. Sessions that are less nice go first, whatever their user and age; of equally nice
sessions the older one goes first. A running grain of a nice session may have to make room at the end
of a time slice, as grains of younger sessions do.

Examples:
  dcs session set 7 --nice 5        later sessions, yours and others', now go first
  dcs session set last --label night
)",
    .options = {{"nice", 0, "N", whole_number(0, wire::most_nice), "from 0 (the default) to 19"},
                {"label", 0, "TEXT", any_text, "a label, shown by `dcs session ls`; '' removes it"}},
    .notes = R"(SEL is NUM, USER/NUM, last (your session that was opened last; refused where a later one was
removed), all (yours) or USER/all.
)",
    .run = set};

extern const Verb session_close_verb = {
    .noun = "session",
    .name = "close",
    .words = "SEL...",
    .summary = "end a session; results stay",
    .about = R"(Ends sessions: running grains are withdrawn; results, checkpoints and outputs stay. Only root and the
pool's owner may close sessions of other users, as USER/NUM or USER/all. Closing a closed session is not an error.

Examples:
  dcs session close 7
  dcs session close done          those in which nothing is left to do
  dcs session close --yes all
)",
    .options = {{"yes", 'y', nullptr, no_value, "do not ask, as is done on a terminal for several sessions with work"}},
    .notes = R"(SEL is NUM, USER/NUM, last (your session that was opened last; refused where a later one was
removed), done (those of dcs map, run and submit whose grains have all ended) or all (yours), USER/done or USER/all.
)",
    .run = close};

}  // namespace dcs::commands
