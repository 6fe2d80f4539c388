// dcs session wait, watch: until the grains of sessions are done.
#include <algorithm>
#include <cstdio>
#include <optional>
#include <utility>

#include <unistd.h>

#include "commands/dcs/query/scheduler.h"
#include "base/clock.h"
#include "commands/dcs/frame/call.h"
#include "commands/dcs/frame/console.h"
#include "commands/dcs/query/grains.h"
#include "commands/dcs/frame/pool_directory.h"
#include "commands/dcs/frame/table.h"
#include "commands/dcs/query/why_waiting.h"

namespace dcs::commands {
namespace {

constexpr int most_listed = 20'000;

// One session at this moment. Killed grains are not waited for.
struct Standing {
    Session session;
    int quiet = 0;  // looks since one was ready or running
    bool over() const {
        const bool idle = session.ready == 0 && session.running == 0;
        return session.terminated() || (idle && (session.not_submitted() == 0 || quiet >= quiet_looks));
    }
    bool cut_off() const { return session.terminated() && session.ready + session.running > 0; }
};

// On standard error: what is being waited for.
struct Telling {
    void say(const std::string &text) {
        if (!rhythm.due(text, boot_clock())) return;
        std::fprintf(stderr, "dcs session %s: %s\n", verb, printable(text).c_str());
        said = true;
    }
    // To people only, once.
    void what_is_waited_for(const Session &session) const {
        if (::isatty(STDERR_FILENO) != 1) return;
        const std::int64_t left = session.ready + session.running;
        std::fprintf(stderr, "dcs session wait: session %s (%s): %lld of %s not finished, %d running\n",
                     session.name().c_str(),
                     shortened(printable(session.command.empty() ? session.ident : session.command), 50).c_str(),
                     static_cast<long long>(left), counted(left + session.finished, "grain").c_str(), session.running);
    }
    // Of a session of which nothing runs. Its first grain speaks for the others; very many are not listed for that.
    void why_nothing_comes(const Session &session) {
        if (boot_clock() < next) return;
        const int before = std::exchange(finished, session.finished);
        // Short ones come and go between two looks.
        const bool runs = session.ready == 0 || session.running > 0 || (before >= 0 && before != session.finished);
        next = boot_clock() + seconds(runs ? 10 : 2);
        if (runs) return say(ask_about_disk());
        std::string text =
            "session " + session.name() + ": " + counted(session.ready, "grain") + " are ready and none runs";
        Info info;
        if (session.ready <= most_listed &&
            info.ask(wire::QueryType::grains, session.user, session.session, -1, "ready") && !info.grains.empty()) {
            const std::string why = ask_why_it_waits(session.user, session.session, info.grains[0].grain);
            if (why.empty()) return say("");
            text = "session " + session.name() + ": " + why;
        }
        say(text);
    }

    const char *verb;
    const std::string directory;  // of the pool
    bool said = false;
    WaitRhythm rhythm{boot_clock()};
    Instant next;
    int finished = -1;  // at the last look
};

// Repeats the question while the scheduler is away, as long as `deadline` and patience allow.
std::optional<Failure> look(const Session &which, Instant deadline, Standing &standing, Telling *telling = nullptr) {
    SessionSelector selector{.user = which.user, .number = which.session};
    const Instant away_until = std::min(deadline, boot_clock() + seconds(away_patience_s));
    while (true) {
        SessionsAnswer answer = sessions_of(selector);
        if (!answer.failure) {
            standing.session = std::move(answer.sessions[0]);
            standing.quiet = standing.session.ready + standing.session.running > 0 ? 0 : standing.quiet + 1;
            return std::nullopt;
        }
        if (answer.failure->exit != exits::unreachable || boot_clock() > away_until || user_set_patience())
            return answer.failure;
        if (telling != nullptr) telling->say(away_text(telling->directory));
        pause_ms(poll_ms);
    }
}

struct Verdict {
    std::int64_t finished = 0, failed = 0, killed = 0, missing = 0;
    bool cut_off = false, can_go_on = false;
    int exit() const { return failed + killed + missing > 0 || cut_off ? exits::grain_failed : exits::ok; }
};

std::optional<Failure> judge(const Standing &standing, Verdict &verdict) {
    const GrainsAnswer answer = grains_of(standing.session, {}, "finished");
    if (answer.failure) return answer.failure;
    verdict.finished += std::ssize(answer.rows);
    verdict.failed += std::count_if(answer.rows.begin(), answer.rows.end(), is_failed);
    verdict.killed += standing.session.killed;
    verdict.missing += std::max(standing.session.not_submitted(), standing.session.did_not_finish());
    verdict.can_go_on = verdict.can_go_on || (standing.session.not_submitted() > 0 && !standing.session.terminated());
    verdict.cut_off = verdict.cut_off || standing.cut_off();
    return std::nullopt;
}

Instant deadline_of(const Call &call) {
    const auto s = call.arguments.seconds("timeout");
    return s ? boot_clock() + seconds_of(*s) : Instant::never();
}

SessionsAnswer chosen(const Call &call) {
    return chosen_sessions(call.arguments.words.empty() ? std::vector<std::string>{"last"} : call.arguments.words,
                           false);
}

int conclude(const Call &call, const char *schema, const std::vector<Standing> &standings) {
    Verdict verdict;
    for (const Standing &standing : standings)
        if (const auto failure = judge(standing, verdict)) return call.fail(*failure);
    if (call.format == Format::json) {
        JsonObject json;
        json.add("schema", schema).add("finished", verdict.finished).add("failed", verdict.failed);
        json.add("killed", verdict.killed).add("missing", verdict.missing).add("closed_early", verdict.cut_off);
        std::printf("%s\n", json.text().c_str());
    } else if (call.format == Format::table) {
        const std::string killed = verdict.killed == 0 ? "" : ", " + std::to_string(verdict.killed) + " killed";
        const std::string missing = verdict.missing == 0 ? ""
                                                         : ", " + std::to_string(verdict.missing) +
                                                               (verdict.cut_off ? " did not finish" : " did not run");
        std::printf("%s finished, %lld failed%s%s%s%s\n", counted(verdict.finished, "grain").c_str(),
                    static_cast<long long>(verdict.failed), killed.c_str(), missing.c_str(),
                    verdict.can_go_on ? ": the command that submits them has ended; the same command continues" : "",
                    verdict.cut_off ? "; the session was closed before all had ended" : "");
    }
    return verdict.exit();
}

int wait_for_sessions(const Call &call) {
    const Instant deadline = deadline_of(call);
    const SessionsAnswer answer = chosen(call);
    if (answer.failure) return call.fail(*answer.failure);
    std::vector<Standing> standings;
    Telling telling{.verb = "wait", .directory = call.directory};
    for (const Session &session : answer.sessions) {
        Standing standing{session};
        if (!standing.over()) telling.what_is_waited_for(session);
        while (!standing.over()) {
            telling.why_nothing_comes(standing.session);
            if (boot_clock() >= deadline)
                return call.fail({exits::timeout, "timeout",
                                  "session " + session.name() +
                                      " has not finished: " + std::to_string(standing.session.ready) + " ready, " +
                                      std::to_string(standing.session.running) + " running",
                                  ""});
            const long long left_ms = deadline == Instant::never() ? poll_ms : (deadline - boot_clock()).ns / 1'000'000;
            pause_ms(std::clamp<long>(static_cast<long>(std::min<long long>(left_ms, poll_ms)), 1, poll_ms));
            if (const auto failure = look(session, deadline, standing, &telling)) {
                const bool late = failure->exit == exits::unreachable && boot_clock() >= deadline;
                return call.fail(late ? Failure{exits::timeout, "timeout", failure->message, failure->hint} : *failure);
            }
        }
        standings.push_back(std::move(standing));
    }
    return conclude(call, "dcs.session.wait/1", standings);
}

std::string watch_line(const Session &s) {
    return "session " + s.name() + " " + s.state + ": " + std::to_string(s.ready) + " ready, " +
           std::to_string(s.running) + " running, " + std::to_string(s.finished) + " finished, " +
           std::to_string(s.killed) + " killed";
}

std::string watch_bar(const Session &s) {
    Progress progress;
    progress.total = s.grains() - s.killed;
    progress.done = s.finished;
    progress.done_before = s.finished;
    progress.running = s.running;
    progress.saved_cpu_s = s.saved_cpu_s;
    return progress_text(progress, 80);
}

int watch_sessions(const Call &call) {
    const SessionsAnswer answer = chosen(call);
    if (answer.failure) return call.fail(*answer.failure);
    const bool redraw = call.format == Format::table && ::isatty(STDOUT_FILENO) == 1;
    std::vector<Standing> standings;
    std::vector<std::string> told(answer.sessions.size());
    Telling telling{.verb = "watch", .directory = call.directory};
    for (const Session &session : answer.sessions) standings.push_back({session});
    for (bool drawn = false;; drawn = !std::exchange(telling.said, false)) {
        bool over = true;
        if (redraw && drawn) std::printf("\033[%zuA", 2 * standings.size());
        for (std::size_t i = 0; i < standings.size(); ++i) {
            const Session &session = standings[i].session;
            const std::string line =
                call.format == Format::json
                    ? JsonObject().add("schema", "dcs.session.show/1").add_raw("session", wire::to_json(session)).text()
                    : watch_line(session);
            if (redraw) std::printf("\033[K%s\n\033[K  %s\n", line.c_str(), watch_bar(session).c_str());
            else if (line != told[i]) std::printf("%s\n", line.c_str());
            told[i] = line;
            over = over && standings[i].over();
        }
        std::fflush(stdout);
        if (over) break;
        pause_ms(poll_ms);
        for (Standing &standing : standings)
            if (const auto failure = look(Session(standing.session), Instant::never(), standing, &telling))
                return call.fail(*failure);
    }
    return conclude(call, "dcs.session.watch/1", standings);
}

}  // namespace

extern const Verb session_wait_verb = {
    .noun = "session",
    .name = "wait",
    .words = "[SEL...]",
    .summary = "wait until all grains of a session have finished",
    .about = R"(Waits until no grain of the sessions is ready or running.

Examples:
  dcs session wait 7
  dcs session wait last --timeout 10m && echo all succeeded
)",
    .options = {{"timeout", 0, "S", seconds_from(0), "give up after S seconds (also 5m, 1:30:00)"}},
    .notes = R"(SEL is NUM, USER/NUM, last (your session that was opened last; the default), all (yours) or USER/all.
Exit code: 0 all grains finished with exit code 0; 10 some failed or were killed, or did not run because the
session was closed or the command that submits has ended; 6 timeout. Killed grains are not waited for.
)",
    .run = wait_for_sessions};

extern const Verb session_watch_verb = {
    .noun = "session",
    .name = "watch",
    .words = "[SEL...]",
    .summary = "follow a session until its grains have finished",
    .about =
        R"(Shows the progress of sessions until all their grains have finished: redrawn on a terminal, otherwise a line
for each change. Ctrl-C ends only the display.

Examples:
  dcs session watch
  dcs session watch 7 | tee progress.log
)",
    .notes = R"(SEL is NUM, USER/NUM, last (your session that was opened last; the default), all (yours) or USER/all.
Exit code as of `dcs session wait`.
)",
    .run = watch_sessions};

}  // namespace dcs::commands
