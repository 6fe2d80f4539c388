#include "open_job.h"

#include <algorithm>
#include <cstdlib>

#include "client/pool.h"
#include "commands/dcs/frame/pool_directory.h"
#include "commands/dcs/frame/table.h"
#include "commands/dcs/map/session.h"
#include "commands/dcs/query/grains.h"
#include "commands/dcs/run/caller_environment.h"
#include "commands/dcs/run/fresh_session.h"

namespace dcs::commands {
namespace {

constexpr std::size_t most_errors = 20;

GrainsNow grains_now(const Job &job, Console &console) {
    return {[&job, &console](int session, const std::vector<int> &grains) {
                return JobWork(job.file, job.parts, session, console).submit_again({grains.begin(), grains.end()});
            },
            [&job, flow = JobFlow(job.file)](int grain) -> const std::vector<std::string> & {
                return job.parts[std::min(flow.table_of(grain), job.parts.size() - 1)].environment;
            }};
}

// What failed in a run that has ended, and what did not run, runs now; the rest is kept.
void take_up(const Job &job, const Session &last, bool from_start, OpenedJob &opened, Console &console) {
    const std::string of_all = " of " + counted(job.file.count, "grain");
    const GrainsNow grains_are = grains_now(job, console);
    std::vector<int> failed;
    opened.session = last.session;
    opened.how = "continues, " + std::to_string(last.finished) + of_all + " finished already";
    bool reopen = false;
    const bool goes_on = std::getenv(goes_on_variable) != nullptr;
    if (!goes_on && (last.terminated() || all_ended_some_failed(last))) {
        std::string from;
        if ((opened.failure = failed_grains(last, failed, from))) return;
        if (from_start) from.clear();
        const std::int64_t bad =
            job.file.count - (last.finished + last.killed) + static_cast<std::int64_t>(failed.size());
        opened.complete = bad <= 0;
        opened.how = opened.complete ? "is complete (--new runs it again)"
                                     : std::to_string(bad) + of_all + " failed or did not run, and are tried again" +
                                           from + " (--new runs all)";
        reopen = !opened.complete && last.terminated();
    }
    if (!goes_on)
        opened.environment = other_environment(
            last, failed.empty() ? 1 : failed.front(), grains_are,
            opened.complete ? "the results are of that one; --new runs all again" : what_runs_takes_it);
    if (auto wrong = submit_again(last, failed, grains_are, from_start))
        return void(opened.failure = with_new_hint(*wrong, last.session));
    int error = d_pool_get_auth(&this_pool(), last.ident.c_str());
    if (error == NO_ERROR)
        error = reopen ? d_pool_reopen_ses(&this_pool(), last.session, TRUE)
                       : d_pool_resume_ses(&this_pool(), last.session, TRUE);
    if (error != NO_ERROR) opened.failure = call_failure("session " + std::to_string(last.session), error);
}

struct LastRun {
    const Session *session = nullptr;
    std::string values;  // variables that have other values than they had
};

// The grain that says in which environment a session is: one that failed, which has that of the latest run, or one that
// starts first.
int speaks_for(const Session &session, int first) {
    std::vector<int> failed;
    std::string from;
    return session.failed > 0 && !failed_grains(session, failed, from) && !failed.empty() ? failed.front() : first;
}

// Of those that differ in the values of variables, each has its own.
LastRun last_run(const Job &job, const std::vector<Session> &own, Console &console) {
    const GrainsNow now = grains_now(job, console);
    JobFlow flow(job.file);
    const int first = job.file.grains[flow.take_startable().at(0)].first;
    LastRun last;
    Alike best = Alike::other_values;
    for (auto session = own.rbegin(); session != own.rend(); ++session) {
        if (!session->ident.starts_with(job.ident + ".") || session->damaged()) continue;
        const int grain = speaks_for(*session, first);
        const auto row = grain_now(session->user, session->session, grain);
        const Likeness likely = row ? likeness(row->env, now.environment(grain)) : Likeness{};
        if (last.session != nullptr && likely.how >= best) continue;
        best = likely.how;
        last = {&*session, likely.changed};
        if (best == Alike::same) break;
    }
    return last;
}

OpenedJob begin_job(const Call &call, const Job &job, const std::vector<Session> &own) {
    std::vector<std::string> errors;
    check_inputs(job.file, job.parts, errors);
    if (!errors.empty()) return {.failure = errors_in_file(errors)};
    const OpenedSession fresh = open_fresh_session(
        ident_of_run(job.ident, fingerprint_of(job.files),
                     std::to_string(job.file.count) + "-" + job.place + random_suffix().substr(0, 4)));
    OpenedJob opened = {.session = fresh.number, .how = counted(job.file.count, "grain"), .failure = fresh.failure};
    if (call.arguments.has("new")) return opened;
    const auto same = std::find_if(own.rbegin(), own.rend(), [&](const Session &s) {
        return s.ident.starts_with("submit-") && s.ident.compare(s.ident.rfind('-') + 1, 4, job.place) == 0;
    });
    if (same != own.rend()) opened.other = ran_before(*same, "this file with other contents, or elsewhere");
    return opened;
}

OpenedJob refused(const Job &job, const LastRun &last) {
    const std::string number = std::to_string(last.session->session);
    const bool complete = last.session->finished - last.session->failed >= job.file.count;
    return {.failure = Failure{exits::refused, "changed",
                               "dcs submit: the environment (" + last.values + ") has changed since session " + number +
                                   " began, in which it has finished " + std::to_string(last.session->finished) +
                                   " of " + counted(job.file.count, "grain"),
                               "--session " + number +
                                   (complete ? " says how it ended" : " continues it with the new values") +
                                   "; --new runs all anew; with `env` in the file other values are another job"}};
}

}  // namespace

Failure errors_in_file(const std::vector<std::string> &errors, const char *hint) {
    std::string text;
    for (std::size_t i = 0; i < std::min(errors.size(), most_errors); ++i) text += (i == 0 ? "" : "\n  ") + errors[i];
    if (errors.size() > most_errors) text += "\n  and " + std::to_string(errors.size() - most_errors) + " more";
    return {exits::usage, "usage", text, hint};
}

Failure with_new_hint(Failure failure, int session) {
    if (failure.code == "grain_differs")
        failure.hint = "a file that this grain gets has changed since; put the earlier one back, or --new starts over";
    else if (failure.hint.empty())
        failure.hint = "session " + std::to_string(session) +
                       " stays: the same command continues it, `dcs session close " + std::to_string(session) +
                       "` ends it, --new starts over";
    return failure;
}

OpenedJob open_job(const Call &call, const Job &job, Console &console) {
    const SessionsAnswer own = own_sessions();
    if (own.failure) return {.failure = own.failure};
    LastRun last;
    if (const auto named = call.arguments.value("session")) {
        const SessionsAnswer meant = sessions_of({*named});
        if (meant.failure) return {.failure = meant.failure};
        const auto is_it = [&](const Session &s) {
            return s.name() == meant.sessions[0].name() && s.ident.starts_with(job.ident + ".") && !s.damaged();
        };
        const auto found = std::ranges::find_if(own.sessions, is_it);
        if (found == own.sessions.end())
            return {.failure = Failure{exits::refused, "session_taken",
                                       "dcs submit: session " + *named + " is not of this file and directory",
                                       "without --session the command finds its session by itself"}};
        last.session = &*found;
    } else if (!call.arguments.has("new")) {
        last = last_run(job, own.sessions, console);
    }
    if (last.session == nullptr) return begin_job(call, job, own.sessions);
    if (!last.values.empty()) return refused(job, last);
    OpenedJob opened;
    JobChange changed = changed_in_job(*last.session, job.directory, job.file, job.parts,
                                       changed_since(last.session->ident, job.ident, job.files));
    opened.changed = std::move(changed.words);
    take_up(job, *last.session, changed.since_failure, opened, console);
    return opened;
}

}  // namespace dcs::commands
