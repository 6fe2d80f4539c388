// dcs session ls, show, close, clean.
#include <cstdio>
#include <unistd.h>

#include "commands/dcs/query/scheduler.h"
#include "commands/dcs/frame/call.h"
#include "client/call.h"
#include "commands/dcs/frame/json.h"
#include "commands/dcs/frame/table.h"
#include "commands/dcs/frame/this_pool.h"

namespace dcs::commands {
namespace {

std::vector<std::string> selectors_or(const Call &call, const char *when_none) {
    if (!call.arguments.words.empty()) return call.arguments.words;
    return {when_none};
}

void print_names(const std::vector<Session> &sessions) {
    for (const Session &session : sessions) std::printf("%s\n", session.name().c_str());
}

void print_table(const std::vector<Session> &sessions) {
    Table table{">SESSION", "IDENT",     "STATE",   ">READY",
                ">RUNNING", ">FINISHED", ">KILLED", ">SENT"};
    long long active = 0, ready = 0, running = 0, finished = 0, killed = 0,
              damaged = 0;
    for (const Session &s : sessions) {
        table.add({s.name(), s.ident, s.state, std::to_string(s.ready), std::to_string(s.running),
                   std::to_string(s.finished), std::to_string(s.killed), std::to_string(s.sent)});
        active += !s.terminated() && !s.damaged();
        damaged += s.damaged();
        ready += s.ready;
        running += s.running;
        finished += s.finished;
        killed += s.killed;
    }
    if (!sessions.empty()) std::printf("%s\n", table.text().c_str());
    std::printf("%s, %lld active; grains: %lld ready, %lld running, %lld finished, %lld killed\n",
                counted(static_cast<std::int64_t>(sessions.size()), "session").c_str(), active,
                ready, running, finished, killed);
    if (damaged > 0) std::printf("%lld damaged: `dcs doctor` says more\n", damaged);
}

int list_sessions(const Call &call) {
    const SessionsAnswer answer =
        call.arguments.words.empty() ? own_sessions() : sessions_of(call.arguments.words);
    if (answer.failed) return call.fail(answer.failure);
    if (call.format == Format::json) {
        std::vector<std::string> rows;
        for (const Session &session : answer.sessions) rows.push_back(session.json);
        print_document("dcs.session.list/1", "sessions", json_array(rows));
    } else if (call.format == Format::name) {
        print_names(answer.sessions);
    } else {
        print_table(answer.sessions);
    }
    return exits::ok;
}

void print_one(const Session &s) {
    std::printf("session   %s\nident     %s\nstate     %s\n", s.name().c_str(), s.ident.c_str(),
                s.state.c_str());
    std::printf("grains    %d ready, %d running, %d finished, %d killed\n", s.ready, s.running,
                s.finished, s.killed);
    std::printf("sent      %d of %d results were handed out\n", s.sent, s.finished);
    if (s.saved_cpu_s > 0)
        std::printf("saved     %s of CPU time, which grains did not spend again thanks to checkpoints\n",
                    seconds_text(s.saved_cpu_s).c_str());
}

int show_session(const Call &call) {
    const SessionsAnswer answer = sessions_of(selectors_or(call, "last"));
    if (answer.failed) return call.fail(answer.failure);
    if (call.format == Format::name) {
        print_names(answer.sessions);
        return exits::ok;
    }
    bool first = true;
    for (const Session &session : answer.sessions) {
        if (call.format == Format::json) {
            print_document("dcs.session.show/1", "session", session.json);
        } else {
            if (!first) std::printf("\n");
            print_one(session);
        }
        first = false;
    }
    return exits::ok;
}

int close(const Call &call) {
    const SessionsAnswer answer = chosen_sessions(call.arguments.words);
    if (answer.failed) return call.fail(answer.failure);
    std::vector<std::string> closed;
    for (const Session &session : answer.sessions) {
        if (session.damaged())
            return call.fail({exits::error, "io_error", "session " + session.name() + " is damaged",
                              "`dcs doctor` says how, `dcs session clean` removes it"});
        int error = session.terminated() ? D_E_SESSION_CLOSED
                                         : d_pool_close_ses_of(&this_pool(), session.user.c_str(), session.number);
        if (error != NO_ERROR && error != D_E_SESSION_CLOSED)
            return call.fail(call_failure("session " + session.name() + " was not closed", error));
        closed.push_back(json_string(session.name()));
        if (call.format == Format::name) std::printf("%s\n", session.name().c_str());
        else if (call.format == Format::table)
            std::printf("session %s %s\n", session.name().c_str(),
                        error == NO_ERROR ? "closed" : "was closed already");
    }
    if (call.format == Format::json)
        print_document("dcs.session.close/1", "closed", json_array(closed));
    return exits::ok;
}

bool confirmed(const std::vector<Session> &sessions) {
    const std::string which =
        sessions.size() == 1
            ? std::string(sessions[0].damaged() ? "damaged session " : "session ") +
                  sessions[0].name()
            : counted(static_cast<std::int64_t>(sessions.size()), "session");
    if (sessions.size() == 1 && sessions[0].damaged())
        std::fprintf(stderr, "What is damaged may still be restored by hand or from an export "
                             "(`dcs doctor` says more).\n");
    std::fprintf(stderr, "Remove all data of %s for good? [y/N] ", which.c_str());
    char answer[16] = "";
    return std::fgets(answer, sizeof answer, stdin) != nullptr &&
           (answer[0] == 'y' || answer[0] == 'Y');
}

// Nobody knows its ident any more: the owner's name must do.
Status clean_damaged(const Session &session) {
    return client::ask<wire::Done>(this_pool(), wire::CleanSession{session.user, session.number},
                                   client::How{client::With::any})
        .status();
}

int clean(const Call &call) {
    const SessionsAnswer answer = sessions_of(call.arguments.words);
    if (answer.failed) return call.fail(answer.failure);
    std::vector<Session> chosen;
    for (const Session &session : answer.sessions) {
        // `all` means all that can be cleaned; a session that was named must be.
        const bool named = call.arguments.words != std::vector<std::string>{"all"};
        if (!session.own() && !named) continue;
        if (!session.own())
            return call.fail({exits::refused, "refused",
                              "session " + session.name() + " belongs to another user", ""});
        if (session.damaged() && !named) continue;  // may yet be restored
        if (!session.terminated() && !session.damaged() && named)
            return call.fail({exits::error, "session_active",
                              "session " + session.name() + " is active",
                              "dcs session close " + session.name() + " ends it"});
        if (session.terminated() || session.damaged()) chosen.push_back(session);
    }
    if (!chosen.empty() && !call.arguments.has("yes") && ::isatty(STDIN_FILENO) == 1 &&
        !confirmed(chosen))
        return call.fail({exits::error, "cancelled", "nothing was removed", ""});
    std::vector<std::string> cleaned;
    for (const Session &session : chosen) {
        if (session.damaged()) {
            if (Status s = clean_damaged(session); !s)
                return call.fail(failure_of("session " + session.name() + " was not removed", s));
        } else {
            int error = d_pool_get_auth(&this_pool(), session.ident.c_str());
            if (error == NO_ERROR) error = d_pool_clean_ses(&this_pool(), session.number);
            if (error != NO_ERROR)
                return call.fail(
                    call_failure("session " + session.name() + " was not removed", error));
        }
        cleaned.push_back(json_string(session.name()));
        if (call.format == Format::name) std::printf("%s\n", session.name().c_str());
        else if (call.format == Format::table)
            std::printf("session %s removed%s\n", session.name().c_str(),
                        session.damaged() ? " (it was damaged)" : "");
    }
    if (call.format == Format::json)
        print_document("dcs.session.clean/1", "cleaned", json_array(cleaned));
    return exits::ok;
}

}  // namespace

extern const Verb session_ls_verb = {
    .noun = "session", .name = "ls", .words = "[SEL...]",
    .summary = "list sessions",
    .about = R"(Lists sessions: yours, or those that the selectors name.

Examples:
  dcs session ls
  dcs session ls all                    of everybody whose sessions you may see
  dcs session ls -o json | jq '.sessions[] | select(.state == "active").session'
)",
    .notes = R"(SEL is NUM, USER/NUM, last (your session with the highest number), USER/last, all or USER/all.
No session at all is an empty list and no error.
)",
    .run = list_sessions};

extern const Verb session_show_verb = {
    .noun = "session", .name = "show", .words = "[SEL...]",
    .summary = "show one session",
    .about = R"(Shows sessions: owner, ident, state and how many grains are in which state.

Examples:
  dcs session show            the last one
  dcs session show 7 -o json
)",
    .notes = R"(SEL is NUM, USER/NUM, last (your session with the highest number) or all.
)",
    .run = show_session};

extern const Verb session_close_verb = {
    .noun = "session", .name = "close", .words = "SEL...",
    .summary = "end a session; results stay",
    .about = R"(Ends sessions: running grains are withdrawn, results, checkpoints and outputs stay. Sessions of other
users need root or the pool's owner, and their names. Closing a closed session is no error.

Examples:
  dcs session close 7
  dcs session close last
)",
    .notes = R"(SEL is NUM, USER/NUM, last (your session with the highest number), all (yours) or USER/all.
)",
    .run = close};

extern const Verb session_clean_verb = {
    .noun = "session", .name = "clean", .words = "SEL...",
    .summary = "remove a closed session's data",
    .about = R"(Removes all data of closed sessions of yours: inputs, checkpoints, outputs, results. A session that is
named must be closed, or damaged (what is left of it is removed); `all` means all of yours that are
closed. Asks on a terminal.

Examples:
  dcs session clean 7
  dcs session clean all --yes
)",
    .options = {
     {"yes", 'y', nullptr, {}, "do not ask"}},
    .notes = R"(SEL is NUM, last (your session with the highest number) or all.
)",
    .run = clean};

}  // namespace dcs::commands
