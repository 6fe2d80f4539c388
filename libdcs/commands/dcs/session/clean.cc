// dcs session clean.
#include <algorithm>
#include <cstdio>
#include <cctype>
#include <optional>
#include <unistd.h>

#include "commands/dcs/query/scheduler.h"
#include "commands/dcs/frame/call.h"
#include "commands/dcs/frame/table.h"
#include "commands/dcs/pool/start_daemon.h"

namespace dcs::commands {
namespace {

bool confirmed(const std::vector<Session> &sessions) {
    const std::string which =
        sessions.size() == 1 ? std::string(sessions[0].damaged() ? "damaged session " : "session ") + sessions[0].name()
                             : counted(sessions.size(), "session");
    if (sessions.size() == 1 && sessions[0].damaged())
        std::fprintf(stderr,
                     "Damaged files may still be restored by hand or from an export (`dcs doctor` says more).\n");
    return says_yes("Permanently remove all data of " + which + "?");
}

// Without the program's token: that of a damaged session is lost, another user's is not ours, and a new one would need
// room that a full disk lacks. The scheduler knows who may do it.
Status clean_by_name(const Session &session) {
    return ask_any<wire::Done>(wire::CleanSession{session.user, session.session}).status();
}

// Leaves those in which nothing happened for so long, by the clock of the scheduler's host, which is `sure` where the
// caller says so. What `dcs map`, `run` or `submit` left active without work counts, too.
std::optional<Failure> keep_older_than(double s, bool sure, std::vector<Session> &sessions) {
    Info info;
    if (const Status asked = info.ask(wire::QueryType::system); !asked)
        return call_failure("the age of sessions is not known", asked);
    if (const auto ahead = info.system.ahead_s; ahead > 0 && !sure)
        return Failure{exits::refused, "clock",
                       "the clock of the scheduler's host was put forward by about " + std::to_string(ahead / 86400) +
                           " days, or no session began or ended for so long; nothing was removed, as ages may be wrong",
                       "correct the clock if it is wrong; if it is right, add --yes"};
    const double before = static_cast<double>(info.system.clock_s) - s;
    std::erase_if(sessions, [&](const Session &session) { return !session.over_before(before); });
    return std::nullopt;
}

// How the user's jobs of sbatch and qsub in it ended stays known, in a file that this host may have.
Status note_jobs(const Session &session) {
    const std::string jobs = own_folder() + "/../libexec/dcs/jobs";
    if (session.ident != "dcs-jobs" || !session.own() || session.damaged() || ::access(jobs.c_str(), X_OK) != 0)
        return {};
    const auto ran = run_program(jobs, {"note", std::to_string(session.session)});
    if (!ran) return ran.status();
    return ran->exit_code == 0 ? Status() : fail(Code::internal, last_lines(ran->errors, 1));
}

std::optional<Failure> clean_one(const Session &session) {
    const std::string what = "session " + session.name() + " was not removed";
    int error = NO_ERROR;
    if (!session.terminated() && !session.damaged())
        error = d_pool_close_ses_of(&this_pool(), session.user.c_str(), session.session);
    if (error != NO_ERROR) return call_failure(what, error);
    if (Status s = note_jobs(session); !s) return call_failure(what, s);
    const Status s = clean_by_name(session);
    return s ? std::nullopt : std::optional(call_failure(what, s));
}

int remove(const Call &call, const std::vector<Session> &chosen) {
    if (chosen.empty()) say_none(call, "removed");
    if (!chosen.empty() && !call.arguments.has("yes") && ::isatty(STDIN_FILENO) == 1 && !confirmed(chosen))
        return call.fail({exits::error, "cancelled", "nothing was removed", ""});
    Listing cleaned(call, "dcs.session.clean/1", "cleaned");
    for (const Session &session : chosen) {
        if (const auto failure = clean_one(session)) return call.fail(*failure);
        cleaned.add(session.name(), "session " + session.name() + " removed" +
                                        (session.damaged()      ? " (it was damaged)"
                                         : session.terminated() ? ""
                                                                : " (it was not closed)"));
    }
    return cleaned.end();
}

int clean(const Call &call) {
    const auto age = call.arguments.seconds("older");
    const std::vector<std::string> &words = call.arguments.words;
    const bool everyone = call.arguments.has("all-users");
    if (const auto text = call.arguments.value("older"); text && std::isdigit(static_cast<unsigned char>(text->back())))
        return call.fail(usage_failure("dcs session clean: --older " + *text + " has no unit",
                                       "--older " + *text + "d is in days; h, m and s are hours, minutes and seconds"));
    if (everyone && !words.empty()) return call.fail(usage_failure("dcs session clean: --all-users takes no SEL"));
    if (!age && !everyone && words.empty())
        return call.fail(usage_failure("dcs session clean: SEL is missing",
                                       "for example dcs session clean 7, or dcs session clean --older 30d"));
    SessionsAnswer answer = everyone        ? sessions_of(std::vector<std::string>{"all"})
                            : words.empty() ? own_sessions()
                                            : chosen_sessions(words);
    if (answer.failure) return call.fail(*answer.failure);
    std::ranges::stable_partition(answer.sessions, [](auto &s) { return !s.own(); });  // a refusal removes nothing
    if (age) {
        const auto failure = keep_older_than(*age, call.arguments.has("yes"), answer.sessions);
        return failure ? call.fail(*failure) : remove(call, answer.sessions);
    }
    // `all` means all that can be cleaned; a session that was named must be.
    const auto one_word = [&](const std::string &word) {
        return words.size() == 1 && (words[0] == word || words[0].ends_with("/" + word));
    };
    const bool named = !everyone && !one_word("all"), with_done = one_word("done");
    std::vector<Session> chosen;
    for (const Session &session : answer.sessions) {
        const bool over = session.terminated() || (with_done && session.is_done());
        if (!over && !session.damaged() && named)
            return call.fail({exits::error, "session_active", "session " + session.name() + " is active",
                              "dcs session close " + session.name() + " ends it"});
        if (over || (session.damaged() && named)) chosen.push_back(session);  // may yet be restored
    }
    return remove(call, chosen);
}

}  // namespace

extern const Verb session_clean_verb = {
    .noun = "session",
    .name = "clean",
    .words = "[SEL...]",
    .summary = "remove a closed session's data",
    .about = R"(Removes all data of closed sessions: inputs, checkpoints, outputs, results. A session that is
named must be closed, or damaged (its remains are removed); `all` means all of your closed
sessions, `done` those of dcs map, run and submit that are not closed, but whose grains have all ended.
Only root, scheduler_master and the pool's owner may remove sessions of other users, as USER/NUM or USER/all.
Asks for confirmation on a terminal.

Examples:
  dcs session clean 7
  dcs session clean all --yes
  dcs session clean --older 30d
  dcs session clean --all-users --older 90d
)",
    .options = {{"older", 0, "AGE", seconds_from(1),
                 "only sessions that ended at least AGE ago (30d, 12h), of all of yours without SEL: closed ones, and\n"
                 "those that dcs map, run or submit left without work"},
                {"all-users", 0, nullptr, no_value, "closed sessions of all users, for operators"},
                {"yes", 'y', nullptr, no_value, "do not ask, and trust the clock of the scheduler's host"}},
    .notes = R"(SEL is NUM, USER/NUM, last (your session that was opened last; refused where a later one was
removed), done or all (yours), USER/done or USER/all.

Programs, files and images that grains brought along, and files that they returned, are in libraries: they leave the
disk later, 24 hours after their last use on the scheduler's host, and after seven days on grain hosts.
)",
    .run = clean};

}  // namespace dcs::commands
