#include "scheduler.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <pwd.h>
#include <set>
#include <unistd.h>

#include "client/query.h"
#include "client/remote.h"
#include "commands/dcs/frame/table.h"
#include "list_in_ident.h"

namespace dcs::commands {
namespace {

// As d_pool::patience() reads it.
bool reads_patience() {
    const char *text = std::getenv("DCS_PATIENCE_S");
    if (text == nullptr || *text == '\0') return false;
    char *end = nullptr;
    const double s = std::strtod(text, &end);
    if (*end == '\0' && s >= 0) return true;
    std::fprintf(stderr, "warning: DCS_PATIENCE_S is `%s`, and not a number of seconds: it has no effect\n",
                 printable(text).c_str());
    return false;
}

}  // namespace

void pause_ms(long ms) {
    const timespec pause = {ms / 1000, ms % 1000 * 1'000'000};
    ::nanosleep(&pause, nullptr);
}

Status Info::ask(wire::QueryType type, const std::string &user, int session, int grain, const std::string &state) {
    wire::Query query{.type = type, .user = user, .session = session, .grain = grain, .status = state};
    static_cast<wire::QueryReply &>(*this) = {};
    return client::query_rows(this_pool(), query, *this);
}

std::string own_user() {
    static const std::string name = [] {
        // A remote scheduler knows the user by the name that its dcs_begin gave.
        if (client::adopt_remote(this_pool()) && this_pool().remote())
            if (const auto program = pki::program_name(this_pool().remote()->certificate.name)) return program->user;
        char buffer[4096];
        passwd entry = {}, *found = nullptr;
        if (::getpwuid_r(::geteuid(), &entry, buffer, sizeof buffer, &found) == 0 && found != nullptr)
            return std::string(found->pw_name);
        return "uid" + std::to_string(::geteuid());
    }();
    return name;
}

bool user_set_patience() {
    static const bool set = reads_patience();
    return set;
}

void set_patience(int seconds) {
    if (!user_set_patience()) this_pool().set_patience(seconds);
}

void work_patiently() {
    set_patience(away_patience_s);
    this_pool().waits = nullptr;
}

std::string Session::name() const { return (own() ? "" : user + "/") + std::to_string(session); }

std::string Session::what(std::size_t columns) const {
    const std::string typed = (label.empty() ? "" : "[" + label + "] ") + (command.empty() ? ident : command);
    return shortened(printable(typed), columns);
}

std::string Session::command_again() const {
    std::string again = command;
    if (const std::size_t at = again.find(" --new "); at < again.find(" -- ")) again.erase(at, 6);
    return again;
}

// The ident is submit-DIGEST.FILES-GRAINS-SUFFIX, or that of a map; of one that leaves out what maps of shorter lists
// have finished, how many those are is not known.
int Session::declared() const {
    if (const auto list = ident.starts_with("map-") ? list_in(ident) : std::nullopt)
        return list->goes_on ? 0 : static_cast<int>(list->inputs);
    int grains = 0, end = 0;
    const int read = std::sscanf(ident.c_str(), "submit-%*14[0-9a-f].%*24[0-9a-f]-%d-%*8[0-9a-f]%n", &grains, &end);
    return read == 1 && end == static_cast<int>(ident.size()) ? grains : 0;
}

int Session::not_submitted() const { return std::max(0, declared() - ready - running - finished - killed); }

std::string Session::submit_log() const {
    if (!own() || !ident.starts_with("submit-")) return "";
    const auto folder = submit_folder(this_pool().directory());
    const std::string log = folder ? *folder + "/" + std::to_string(session) + ".log" : "";
    return ::access(log.c_str(), R_OK) == 0 ? log : "";
}

bool Session::has_no_work() const {
    const bool of_command = ident.starts_with("map-") || ident.starts_with("dcs-run-") || declared() > 0;
    return of_command && ready + running + not_submitted() == 0;
}

namespace {

std::int64_t count_of(const std::vector<Session> &sessions, bool (Session::*is)() const) {
    return std::count_if(sessions.begin(), sessions.end(), [&](const Session &s) { return (s.*is)(); });
}

}  // namespace

std::string open_sessions_text(const std::vector<Session> &sessions) {
    const std::int64_t active = count_of(sessions, &Session::is_active), done = count_of(sessions, &Session::is_done);
    return std::to_string(active) + " active" + (done == 0 ? "" : ", " + std::to_string(done) + " done but not closed");
}

bool Session::over_before(double when) const {
    const bool over = terminated() || has_no_work();
    const double last = std::max(submitted_s, settled_s);
    return !damaged() && over && last > 0 && last < when;
}

namespace {

// By when it was opened; a scheduler of an earlier release does not tell.
bool is_newer(const Session &a, const Session &b) {
    return std::pair(a.submitted_s, a.session) > std::pair(b.submitted_s, b.session);
}

// A script that says `last` once more would go on with the session before.
std::optional<Failure> slid_to(const Session &session, int removed, bool to_change) {
    const std::string name = session.name(), why = "session " + std::to_string(removed) + " was removed: `last` ";
    if (to_change)
        return Failure{exits::refused, "refused", why + "would now be session " + name,
                       "write " + name + " in the place of last if you mean that one"};
    static std::set<std::string> told;
    if (told.insert(name).second) std::fprintf(stderr, "dcs: %sis now session %s\n", why.c_str(), name.c_str());
    return std::nullopt;
}

}  // namespace

SessionsAnswer sessions_of(const SessionSelector &selector) {
    SessionsAnswer answer;
    const std::string user = selector.user.empty() ? own_user() : selector.user;
    Info info;
    const bool one = selector.which == SessionSelector::Which::number;
    if (const Status s =
            info.ask(wire::QueryType::sessions, selector.of_all_users ? "" : user, one ? selector.number : -1);
        !s)
        return {.failure = call_failure(s.code == Code::unreachable ? "" : "the list of sessions", s)};
    answer.last_number = info.last_number;
    answer.stored = std::move(info.stored);
    for (const wire::SessionRow &row : info.sessions) {
        Session session{row};
        if (!selector.of_all_users && session.user != user) continue;
        if (selector.done && !session.is_done()) continue;
        if (selector.which == SessionSelector::Which::number && session.session != selector.number) continue;
        if (selector.which == SessionSelector::Which::last && !answer.sessions.empty() &&
            is_newer(session, answer.sessions[0]))
            answer.sessions.clear();
        if (selector.which != SessionSelector::Which::last || answer.sessions.empty())
            answer.sessions.push_back(std::move(session));
    }
    if (selector.which == SessionSelector::Which::last && !answer.sessions.empty() &&
        answer.last_number > answer.sessions[0].session && answer.last_number < numbers_in_a_row)
        if (auto failure = slid_to(answer.sessions[0], answer.last_number, selector.to_change))
            return {.failure = std::move(failure)};
    if (!answer.sessions.empty() || selector.which == SessionSelector::Which::all) return answer;
    const std::string whose = selector.user.empty() ? "" : selector.user + "/";
    answer.failure = not_found_failure(selector.which == SessionSelector::Which::last
                                           ? user + " has no session"
                                           : "there is no session " + whose + std::to_string(selector.number),
                                       "`dcs session ls` lists the existing sessions");
    answer.failure->code = "session_unknown";
    return answer;
}

SessionsAnswer sessions_of(const std::vector<std::string> &selectors, bool to_change) {
    SessionsAnswer all;
    for (const std::string &selector_text : selectors) {
        auto selector = session_selector(selector_text);
        if (!selector) return {.failure = usage_failure(selector.status().text)};
        selector->to_change = to_change;
        SessionsAnswer one = sessions_of(*selector);
        if (one.failure) return one;
        for (Session &session : one.sessions) {
            const bool seen = std::any_of(all.sessions.begin(), all.sessions.end(), [&](const Session &s) {
                return s.user == session.user && s.session == session.session;
            });
            if (!seen) all.sessions.push_back(std::move(session));
        }
        for (wire::StoredRow &row : one.stored) {
            const auto same = [&](const wire::StoredRow &r) { return r.user == row.user; };
            if (std::none_of(all.stored.begin(), all.stored.end(), same)) all.stored.push_back(std::move(row));
        }
    }
    return all;
}

SessionsAnswer chosen_sessions(const std::vector<std::string> &selectors, bool to_change) {
    std::vector<std::string> own = selectors;
    for (std::string &selector : own)
        if (selector == "all") selector = own_user() + "/all";
    return sessions_of(own, to_change);
}

void say_none(const Call &call, const char *done) {
    if (call.format == Format::table) std::fprintf(stderr, "dcs: no such session; nothing was %s\n", done);
}

SessionsAnswer own_sessions() {
    SessionSelector selector{.which = SessionSelector::Which::all};
    return sessions_of(selector);
}

Result<wire::Explanation> explain(const std::string &user, int session, int grain) {
    return ask_any<wire::Explanation>(wire::Explain{user, session, grain});
}

SessionsAnswer sessions_of_all_users() {
    return sessions_of({.which = SessionSelector::Which::all, .of_all_users = true});
}

std::string json_of_system(const wire::SystemRow &row, const SessionsAnswer &all) {
    JsonObject json;
    json.add("version", row.version).add("epoch", row.epoch).add("turn", row.turn).add("up_s", row.up_s);
    json.add("hosts", row.hosts).add("hosts_active", row.hosts_active);
    if (!all.failure)
        json.add("sessions_active", count_of(all.sessions, &Session::is_active))
            .add("sessions_done", count_of(all.sessions, &Session::is_done));
    return json.add("ready", row.ready).add("running", row.running).text();
}

std::optional<Failure> take_class(const Arguments &arguments, std::uint32_t &mask) {
    const auto names = arguments.value("class");
    if (!names) return std::nullopt;
    const auto found = client::mask_of_classes(this_pool(), *names);
    if (found) {
        mask = *found;
        return std::nullopt;
    }
    Failure failure = call_failure("--class " + *names, found.status());
    if (found.status().code == Code::not_found)
        failure.hint = "`dcs host ls` shows the classes of hosts; lines `class NAME=MASK` of the host table name them";
    return failure;
}

}  // namespace dcs::commands
