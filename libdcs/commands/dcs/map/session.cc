#include "session.h"

#include <algorithm>
#include <chrono>
#include <set>
#include <thread>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "dcs.h"
#include "commands/dcs/frame/table.h"
#include "commands/dcs/frame/pool_directory.h"
#include "commands/dcs/query/grains.h"
#include "commands/dcs/run/caller_environment.h"
#include "commands/dcs/run/fresh_session.h"

namespace dcs::commands {
namespace {

// A run that was killed a moment ago may take so long to be gone.
constexpr std::int64_t claim_patience_s = 2;
constexpr int most_looks = 100;  // for the first grain of a run that has just begun, in all 5 s

locks::Deadline in_seconds(std::int64_t s) { return {(boot_clock() + seconds(s)).ns}; }

OpenedMap failed(const Failure &failure) { return {.failure = failure}; }

std::string name_of(const Session &session) { return "session " + std::to_string(session.session); }

// Without the list of inputs behind CMD.
std::string words_of_command(const Session &session) {
    const std::string command = session.command_again();
    return command.substr(0, command.find(" ::: "));
}

class Opening {
public:
    Opening(const Call &call, const WholeMap &map, const GrainsNow &now)
        : call_(call),
          map_(map),
          base_(ident_of(map.plan)),
          files_(map.files(map.plan.inputs.size())),
          now_(now),
          total_(std::ssize(map.plan.inputs)) {}

    OpenedMap open();

private:
    bool asked(const char *option) const { return call_.arguments.has(option); }
    OpenedMap named(int number, const std::vector<Session> &own);
    OpenedMap newest(const std::vector<Session> &own);
    std::optional<wire::GrainRow> first_grain(const Session &session) const;
    OpenedMap begin_new(std::optional<int> number, const std::string &how);
    void look_at_shorter_lists(const std::vector<Session> &own, const Session &session);
    std::string of_shorter_lists(const std::vector<Session> &own) const;
    OpenedMap begin_all(const std::string &how);
    OpenedMap begin_other(const std::vector<Session> &own);
    OpenedMap again(const Session &session);
    OpenedMap take_up(const Session &session, bool reopen, const std::string &how);
    OpenedMap resume(const Session &session);
    std::optional<Failure> begin_again(Session &session, const std::vector<int> &grains);
    OpenedMap run_failed_ones(Session session);
    OpenedMap after_complete(Session session);
    bool claim(int session);
    Failure runs_already(const Session &session) const;
    // Of its own settings, which may be others.
    std::string base_of(const Session &session) const { return session.ident.substr(0, base_.size()); }
    std::string recorded(const Session &session) const { return fingerprint_in(session.ident, base_of(session)); }
    std::string changed_files(const Session &session) const {
        return changed_under(session, recorded(session), files_, map_.plan, map_.words);
    }
    std::int64_t ended_earlier() const {
        return std::count_if(earlier_.begin(), earlier_.end(),
                             [](const EarlierResult &result) { return !result.runs; });
    }
    int first_own() const {  // the first grain that no shorter list has
        int grain = 1;
        for (const EarlierResult &result : earlier_) grain += result.grain == grain;
        return grain;
    }
    std::int64_t left() const { return total_ - std::ssize(earlier_); }  // for the session
    // Without a program to start a grain is not submitted. Results of a shorter list may have been removed.
    std::int64_t without_result(const Session &session) const { return left() - session.finished - session.killed; }
    std::string of_grains(std::int64_t n) const { return std::to_string(n) + " of " + counted(total_, "grain"); }

    const Call &call_;
    const WholeMap &map_;
    const std::string base_;
    const std::vector<MapFile> files_;
    const GrainsNow &now_;
    const std::int64_t total_;
    std::vector<EarlierResult> earlier_;
    std::string refused_;                         // why those of a shorter list do not count, which they did once
    std::string environment_;                     // how it differs
    std::string values_;                          // for people: the environment, if it has other values than it had
    bool begun_again_ = false;                    // what waits in the session is as it is submitted now
    std::optional<locks::SessionClaims> claims_;  // none: the user has no place for locks
};

// True: no other process of this host works for it.
bool Opening::claim(int session) {
    if (!claims_) return true;
    const auto taken = claims_->take(session, in_seconds(claim_patience_s));
    return !taken || *taken;
}

Failure Opening::runs_already(const Session &session) const {
    const pid_t pid = claims_->holder(session.session);
    return {exits::map_failed, "running",
            "dcs map: this map runs already" + since_text(pid) + ", " +
                (pid > 0 ? "as process " + std::to_string(pid) + ", " : "") + "in " + name_of(session),
            "wait for it (`dcs session watch " + std::to_string(session.session) +
                "` shows it), or let --new run it a second time"};
}

OpenedMap Opening::take_up(const Session &session, bool reopen, const std::string &how) {
    if (!claim(session.session)) return failed(runs_already(session));
    if (const int error = d_pool_get_auth(&this_pool(), session.ident.c_str()); error != NO_ERROR)
        return failed(call_failure("the authorization", error));
    if (!begun_again_ && without_result(session) > 0)
        environment_ = other_environment(session, first_own(), now_, what_runs_takes_it);
    if (reopen && !begun_again_)
        if (const auto wrong = submit_again(session, {}, now_, false)) return failed(*wrong);
    const int error = reopen ? d_pool_reopen_ses(&this_pool(), session.session, TRUE)
                             : d_pool_resume_ses(&this_pool(), session.session, TRUE);
    if (error != NO_ERROR) return failed(call_failure(name_of(session), error));
    return {.session = session.session, .done_before = session.finished, .how = how};
}

OpenedMap Opening::begin_new(std::optional<int> number, const std::string &how) {
    const std::string suffix = suffix_of_run({map_.plan.inputs.size(), !earlier_.empty()}, random_suffix());
    const std::string ident = ident_of_run(base_, fingerprint_of(files_), suffix);
    OpenedMap opened{.fresh = true, .how = counted(total_, "grain") + how};
    if (!number) {
        const OpenedSession fresh = open_fresh_session(ident);
        if (fresh.failure) return failed(*fresh.failure);
        opened.session = fresh.number;
    } else {
        if (const int error = d_pool_get_auth(&this_pool(), ident.c_str()); error != NO_ERROR)
            return failed(call_failure("the authorization", error));
        if (const int error = d_pool_resume_ses(&this_pool(), *number, TRUE); error != NO_ERROR)
            return failed(call_failure("session " + std::to_string(*number), error));
        opened.session = *number;
    }
    claim(opened.session);
    return opened;
}

OpenedMap Opening::begin_all(const std::string &how) {
    earlier_.clear();
    return begin_new({}, how);
}

void Opening::look_at_shorter_lists(const std::vector<Session> &own, const Session &session) {
    earlier_.clear();
    refused_.clear();
    const auto list = list_in(session.ident);
    if (!list || !list->goes_on) return;
    EarlierResults found = earlier_results(own, map_, &session);
    earlier_ = std::move(found.results);
    refused_ = std::move(found.refused);
}

std::string Opening::of_shorter_lists(const std::vector<Session> &own) const {
    std::set<int> sessions;
    for (const EarlierResult &result : earlier_) sessions.insert(result.session);
    std::string names;
    for (const Session &session : own)
        if (sessions.count(session.session) != 0) names += (names.empty() ? "" : ", ") + name_of(session);
    const std::int64_t ended = ended_earlier(), run = std::ssize(earlier_) - ended;
    return ", of which " + (ended > 0 ? std::to_string(ended) + " finished" : "") +
           (ended > 0 && run > 0 ? " and " : "") +
           (run > 0 ? std::to_string(run) + " still " + (run == 1 ? "runs" : "run") : "") + " with a shorter list (" +
           names + "); the other " + std::to_string(left()) + (left() == 1 ? " runs" : " run") + ", --new runs all";
}

// The same words may have run with other inputs. A list of them that has grown at its end goes on.
OpenedMap Opening::begin_other(const std::vector<Session> &own) {
    EarlierResults found = earlier_results(own, map_, nullptr);
    earlier_ = std::move(found.results);
    const std::string refused = found.refused.empty() ? "" : "; " + found.refused;
    if (!earlier_.empty()) return begin_new({}, of_shorter_lists(own) + refused);
    if (!refused.empty()) return begin_new({}, refused + ", so all run");
    OpenedMap opened = begin_new({}, "");
    if (opened.failure || own.empty()) return opened;
    const SessionsAnswer ours = sessions_of({std::to_string(opened.session)});
    if (ours.failure || ours.sessions[0].command.empty()) return opened;
    const std::string words = words_of_command(ours.sessions[0]);
    const auto same = std::find_if(own.rbegin(), own.rend(), [&](const Session &other) {
        return other.ident.starts_with("map-") && words_of_command(other) == words;
    });
    if (same != own.rend())
        opened.how += "; " + ran_before(*same, "the same words with other inputs, files or environment, or elsewhere");
    return opened;
}

// Whatever has changed since: what is done of it comes from its record, the rest runs.
OpenedMap Opening::again(const Session &session) {
    const bool whole = session.ready + session.running == 0 && without_result(session) <= 0;
    const bool complete = whole && end_of_run(session) == RunEnd::complete;
    if (asked("replay") && !whole)
        return failed(not_found_failure("dcs map: nothing to replay: " + of_grains(without_result(session)) +
                                            " have no result" + (refused_.empty() ? "" : "; " + refused_),
                                        "omit --replay to run them"));
    OpenedMap opened = take_up(
        session, session.terminated() && !whole,
        complete ? "is complete; its results again" +
                       std::string(session.failed + session.killed == 0 ? "" : " (--resume-failed runs what failed)")
                 : "resumed, " + of_grains(session.finished + ended_earlier()) + " finished already" +
                       (refused_.empty() ? "" : "; " + refused_ + ", so its inputs run again"));
    if (const std::string changed = changed_since(session.ident, base_of(session), files_); !changed.empty())
        opened.warning = changed + " has changed since " + name_of(session) +
                         " began; results from before the change are kept. --new runs all grains again";
    else if (!values_.empty() && asked("replay"))
        opened.warning = values_ + " has changed since " + name_of(session) + " began, whose results these are";
    if (!is_run_of(session.ident, base_))
        opened.warning = name_of(session) + " began with another --env, --file or --input: its results are of those";
    return opened;
}

// A run that was interrupted goes on, unless that would mix the results of two programs, or of versions of an input.
OpenedMap Opening::resume(const Session &session) {
    std::string changed = changed_files(session);
    if (changed.empty()) changed = values_;
    const std::string number = std::to_string(session.session);
    const std::string hint =
        "--session " + number + " continues it nevertheless; --new starts over, and `dcs session close " + number +
        "` ends the old one" + (!changed.empty() && changed == values_ ? "; --env NAME=VALUE keeps maps apart" : "");
    if (changed.empty() && !refused_.empty())
        return failed({exits::refused, "changed",
                       "dcs map: " + refused_ + ", and session " + number + " goes on with its results", hint});
    const bool some_failed =
        all_ended_some_failed(session) || (!map_.words.outputs.empty() && session.ready + session.running == 0);
    if (changed.empty()) return some_failed ? run_failed_ones(session) : again(session);
    return failed({exits::refused, "changed",
                   "dcs map: " + changed + " has changed since session " + number +
                       " began, in which it has finished " + of_grains(session.finished),
                   hint});
}

// The row is the session's afterwards.
std::optional<Failure> Opening::begin_again(Session &session, const std::vector<int> &grains) {
    if (!claim(session.session)) return runs_already(session);
    environment_ = other_environment(session, grains.empty() ? first_own() : grains.front(), now_, what_runs_takes_it);
    const bool changed = !changed_since(session.ident, base_of(session), files_).empty();
    if (const auto wrong = submit_again(session, grains, now_, changed)) return wrong;
    begun_again_ = true;
    SessionsAnswer now = sessions_of({session.name()});
    if (!now.failure) session = std::move(now.sessions[0]);
    return now.failure;
}

OpenedMap Opening::run_failed_ones(Session session) {
    std::vector<int> grains;
    std::string from;
    if (const auto wrong = failed_grains(session, grains, from)) return failed(*wrong);
    if (const auto wrong = begin_again(session, grains)) return failed(*wrong);
    return again(session);
}

// All of it was written out. A rerun starts over, or runs only failed grains if nothing has changed since.
OpenedMap Opening::after_complete(Session session) {
    std::vector<int> grains;
    std::string from;
    if (const auto wrong = failed_grains(session, grains, from)) return failed(*wrong);
    if (!refused_.empty()) return begin_all("; " + refused_ + ", so all run");
    const std::int64_t bad = without_result(session) + std::ssize(grains);
    const std::string last = "; the last run, " + name_of(session) + ", ";
    if (bad == 0) return begin_all(last + "is complete: all run again (--replay prints its outputs instead)");
    const std::string had =
        "had " + std::to_string(bad) + (grains.empty() ? " without a result, and " : " that failed, and ");
    if (const std::string changed = changed_files(session); !changed.empty())
        return begin_all(last + had + changed + " has changed since: all run (--resume-failed runs only what failed)");
    if (!values_.empty())
        return failed({exits::refused, "changed",
                       "dcs map: " + name_of(session) + " " + had + values_ + " has changed since",
                       "--resume-failed runs what failed with the new values; --new runs all"});
    const std::string other = changed_in_inputs(recorded(session), files_);
    const std::string repaired = other.empty() ? "" : "; " + other + " has changed, on which these do not depend";
    if (!other.empty()) from.clear();
    if (const auto wrong = begin_again(session, grains)) return failed(*wrong);
    OpenedMap opened = take_up(session, session.terminated(),
                               of_grains(bad) + (grains.empty() ? " had no result" : " failed") +
                                   " in the last run and " + (bad == 1 ? "runs" : "run") + " again" + from +
                                   ", the other outputs are that run's (--new runs all)" + repaired);
    opened.done_before = left() - bad;
    return opened;
}

OpenedMap Opening::named(int number, const std::vector<Session> &own) {
    for (const Session &session : own) {
        if (session.session != number) continue;
        const std::string name = name_of(session);
        const bool other = !has_words_of(session.ident, base_);
        if (asked("new") || other)
            return failed({exits::refused, "session_taken",
                           name + (asked("new") ? " exists already"
                                                : " belongs to another command (" + session.ident +
                                                      "), directory or list of inputs"),
                           "omit --session, or give a free number"});
        if (asked("replay") && end_of_run(session) != RunEnd::complete)
            return failed(not_found_failure("dcs map: nothing to replay: " + name + " is not complete",
                                            "omit --replay to continue it"));
        look_at_shorter_lists(own, session);
        return asked("resume-failed") ? run_failed_ones(session) : again(session);
    }
    if (asked("replay"))
        return failed(not_found_failure("there is no session " + std::to_string(number),
                                        "`dcs session ls` lists the existing sessions"));
    return begin_new(number, asked("new") ? "" : "; there was no session " + std::to_string(number) + ", so all run");
}

// A run that has just begun submits it soon.
std::optional<wire::GrainRow> Opening::first_grain(const Session &session) const {
    for (int tries = 1;; ++tries) {
        const bool works = claims_ && claims_->holder(session.session) != 0;  // before: it may submit, and end, now
        auto row = grain_now(session.user, session.session, first_own());
        if (row || !works || tries == most_looks) return row;
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
}

OpenedMap Opening::newest(const std::vector<Session> &own) {
    const Session *last = nullptr;
    Alike best = Alike::other_values;
    // Of a sweep by an exported variable, each has its own.
    for (auto session = own.rbegin(); session != own.rend(); ++session) {
        if (!is_run_of(session->ident, base_) || session->damaged()) continue;
        look_at_shorter_lists(own, *session);
        const auto first = first_grain(*session);
        if (!first && claims_ && claims_->holder(session->session) != 0) return failed(runs_already(*session));
        const std::vector<std::string> &environment = now_.environment(first_own());
        const Likeness now = first ? likeness(first->env, environment) : Likeness{};
        if (last != nullptr && now.how >= best) continue;
        last = &*session;
        best = now.how;
        values_ = now.changed.empty() ? "" : "the environment (" + now.changed + ")";
        if (best == Alike::same) break;
    }
    const bool complete = last != nullptr && end_of_run(*last) == RunEnd::complete;
    if (asked("replay") && !complete) {
        const std::string why = last == nullptr ? "this map has not run yet" : name_of(*last) + " is not complete";
        return failed(not_found_failure("dcs map: nothing to replay: " + why, "omit --replay to run it"));
    }
    if (last == nullptr && !asked("new")) return begin_other(own);
    if (asked("new")) return begin_new({}, "");
    look_at_shorter_lists(own, *last);
    if (asked("resume-failed")) return run_failed_ones(*last);
    if (asked("replay")) return again(*last);
    const bool has_failed = asked("detach") && all_ended_some_failed(*last);
    return complete || has_failed ? after_complete(*last) : resume(*last);
}

OpenedMap Opening::open() {
    const std::string word = call_.arguments.value("session").value_or("");
    std::optional<std::int64_t> number = number_of(word, 0, INT32_MAX);
    if (!word.empty() && !number && word != "last")
        return failed(usage_failure("dcs map: --session is " + word + ": it must be a session's number, or last"));
    if (asked("replay") && (asked("new") || asked("resume-failed")))
        return failed(usage_failure("dcs map: --replay runs nothing: it excludes --new and --resume-failed"));
    claims_ = claims_at_door(call_.directory);
    const SessionsAnswer own = own_sessions();
    if (own.failure) return failed(*own.failure);
    if (word == "last") {
        const SessionsAnswer last = sessions_of({word});
        if (last.failure) return failed(*last.failure);
        number = last.sessions[0].session;
    }
    OpenedMap opened = number ? named(static_cast<int>(*number), own.sessions) : newest(own.sessions);
    opened.done_before += ended_earlier();
    opened.earlier = std::move(earlier_);
    opened.environment = std::move(environment_);
    opened.files = fingerprint_of(files_);
    if (claims_) {
        claims_->leave();
        opened.claims = std::move(claims_);
    }
    return opened;
}

}  // namespace

OpenedMap open_map(const Call &call, const WholeMap &map, const GrainsNow &now) {
    return Opening(call, map, now).open();
}

}  // namespace dcs::commands
