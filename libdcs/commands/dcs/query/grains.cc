#include "grains.h"

#include <algorithm>
#include <cstdio>

#include "base/limits.h"
#include "commands/dcs/frame/table.h"

namespace dcs::commands {
namespace {

// So many grains that are named one by one are asked for one by one: a session may have a million.
constexpr std::int64_t asked_one_by_one = 64;

std::int64_t named(const std::vector<GrainRange> &ranges) {
    std::int64_t count = ranges.empty() ? asked_one_by_one + 1 : 0;
    for (const GrainRange &range : ranges) count += std::int64_t{range.last} - range.first + 1;
    return count;
}

// False: use another query (details of other users' grains are not shown).
bool ask_one_by_one(const Session &session, const std::vector<GrainRange> &ranges, GrainsAnswer &answer) {
    for (const GrainRange &range : ranges) {
        for (std::int64_t number = range.first; number <= range.last; ++number) {
            Info info;
            const Status s = info.ask(wire::QueryType::grain, session.user, session.session, static_cast<int>(number));
            if (s.code == Code::grain_unknown) continue;
            if (!s) return false;
            for (wire::GrainRow &row : info.grains) answer.rows.push_back(std::move(row));
        }
    }
    const auto before = [](const auto &a, const auto &b) { return a.grain < b.grain; };
    const auto same = [](const auto &a, const auto &b) { return a.grain == b.grain; };
    std::sort(answer.rows.begin(), answer.rows.end(), before);
    answer.rows.erase(std::unique(answer.rows.begin(), answer.rows.end(), same), answer.rows.end());
    return true;
}

Failure no_such_grain(const Session &session, const std::string &word, const GrainSelector &selector) {
    const int first = selector.ranges[0].first, last = selector.ranges[0].last;
    Failure failure =
        not_found_failure("there is no grain " + word, "`dcs grain ls " + session.name() + "` lists the existing ones");
    failure.code = "grain_unknown";
    if (selector.ranges.size() > 1 || first < 1 || last > session.declared()) return failure;
    failure.message = "grain " + word + (session.terminated() ? " was never submitted" : " is not submitted yet");
    const std::string log = session.submit_log();
    const bool of_file = session.ident.starts_with("submit-");
    failure.hint = (of_file ? "`dcs submit` submits a grain when those that it comes after have succeeded; " : "") +
                   (log.empty() ? "`dcs session show " + session.name() + "` shows how many are missing"
                                : log + " says what did not run");
    return failure;
}

std::optional<Failure> add_grains(const Session &session, const std::string &word, const GrainSelector &selector,
                                  const std::string &state, const std::string &host, ChosenGrains &chosen) {
    GrainsAnswer answer = grains_of(session, selector.ranges, state);
    if (answer.failure) return answer.failure;
    if (answer.rows.empty() && !selector.ranges.empty() && state.empty()) return no_such_grain(session, word, selector);
    if (!host.empty()) std::erase_if(answer.rows, [&](const wire::GrainRow &row) { return row.host != host; });
    if (selector.ranges.empty() && state.empty() && host.empty() && !session.terminated())
        chosen.not_submitted += session.not_submitted();
    if (session.failed + session.killed + session.not_submitted() > 0) chosen.logs.insert(session.submit_log());
    for (wire::GrainRow &row : answer.rows) {
        chosen.grains.rows.push_back(std::move(row));
        chosen.sessions.push_back(session.name());
        chosen.named_alone.push_back(selector.one());
        chosen.closed.push_back(session.terminated());
    }
    return std::nullopt;
}

}  // namespace

std::string ChosenGrains::state(std::size_t i) const {
    const wire::GrainRow &row = grains.rows[i];
    if (row.state != "ready" || !closed[i]) return row.state;
    return row.starts > 0 ? "withdrawn" : "not run";
}

ChosenGrains choose_grains(const std::vector<std::string> &selectors, bool bare_session, const std::string &state,
                           const std::string &host, bool to_change) {
    ChosenGrains chosen;
    for (const std::string &word : selectors) {
        const auto strict = grain_selector(word, bare_session);
        auto selector = to_change ? strict : grain_selector(word, true);
        if (!selector) return {.failure = usage_failure(strict.status().text)};
        selector->session.to_change = to_change;
        const bool every = selector->session.which == SessionSelector::Which::all;
        if (every && !strict) return {.failure = usage_failure(strict.status().text)};
        const SessionsAnswer sessions = sessions_of(selector->session);
        if (sessions.failure) return {.failure = sessions.failure};
        if (!strict && sessions.sessions[0].grains() != 1) return {.failure = usage_failure(strict.status().text)};
        for (const Session &session : sessions.sessions) {
            if (every && session.damaged()) continue;
            if (auto failure = add_grains(session, word, *selector, state, host, chosen)) {
                if (every && failure->code == "session_unknown") continue;  // removed meanwhile
                return {.failure = std::move(failure)};
            }
        }
    }
    return chosen;
}

void print_grain_names(const ChosenGrains &chosen) {
    for (std::size_t i = 0; i < chosen.grains.rows.size(); ++i) std::printf("%s\n", chosen.name(i).c_str());
}

// What the answer has of the grains that follow is kept for their turn.
Status DetailedRows::ask(std::size_t i) {
    const wire::GrainRow &row = rows_[i];
    wire::Query query{.type = wire::QueryType::grain, .user = row.user, .session = row.session, .grain = row.grain};
    const auto goes_along = [&](const wire::GrainRow &r) {
        return r.user == row.user && r.session == row.session && r.argv.empty() &&
               query.with.size() < limits::detailed_rows;
    };
    for (++i; i < rows_.size() && goes_along(rows_[i]); ++i) query.with.push_back(rows_[i].grain);
    auto reply = ask_any<wire::QueryReply>(query);
    if (!reply) return reply.status();
    whole_.clear();
    for (wire::GrainRow &whole : reply->grains) whole_[whole.grain] = std::move(whole);
    return Status::ok();
}

Result<wire::GrainRow> DetailedRows::at(std::size_t i) {
    const wire::GrainRow &row = rows_[i];
    if (!row.argv.empty() || refused_.count(row.user) > 0) return row;
    auto found = whole_.find(row.grain);
    if (found == whole_.end() || found->second.user != row.user || found->second.session != row.session) {
        const Status s = ask(i);
        if (s.code == Code::refused) refused_.insert(row.user);
        if (!s && call_failure("", s).exit == exits::unreachable) return s;
        found = whole_.find(row.grain);
        if (found == whole_.end()) return row;  // it is damaged, or was removed
    }
    wire::GrainRow whole = std::move(whole_.extract(found).mapped());
    if (whole.state == row.state) return whole;
    wire::GrainRow then = row;  // which was chosen by its state
    then.label = std::move(whole.label);
    then.argv = std::move(whole.argv);
    then.directory = std::move(whole.directory);
    then.env = std::move(whole.env);
    return then;
}

std::string DetailedRows::item_at(std::size_t i, std::size_t columns) {
    const auto whole = at(i);
    const wire::GrainRow &row = whole ? *whole : rows_[i];
    return shortened(printable(row.label.empty() ? label_of(row.argv, columns) : row.label), columns);
}

bool is_failed(const wire::GrainRow &row) {
    const auto lacks = [](const wire::GrainFile &output) { return output.digest.empty(); };
    return row.state == "finished" && (row.exit_code != 0 || row.signal != 0 || std::ranges::any_of(row.files, lacks));
}

bool is_over(const wire::GrainRow &row) { return row.state == "finished" || row.state == "killed"; }

std::optional<wire::GrainRow> grain_now(const std::string &user, int session, int grain) {
    Info info;
    const bool known = info.ask(wire::QueryType::grain, user, session, grain) && info.grains.size() == 1;
    return known ? std::optional(std::move(info.grains[0])) : std::nullopt;
}

GrainsAnswer grains_of(const Session &session, const std::vector<GrainRange> &ranges, const std::string &state) {
    GrainsAnswer answer;
    if (state.empty() && named(ranges) <= asked_one_by_one) {
        if (ask_one_by_one(session, ranges, answer)) return answer;
        answer = GrainsAnswer();
    }
    Info info;
    const std::string asked = state == "failed" ? "finished" : state;
    if (const Status s = info.ask(wire::QueryType::grains, session.user, session.session, -1, asked); !s)
        return {.failure = call_failure("the grains of session " + session.name(), s)};
    GrainSelector selector{.ranges = ranges};
    for (wire::GrainRow &row : info.grains)
        if (selector.has(row.grain) && (state != "failed" || is_failed(row))) answer.rows.push_back(std::move(row));
    return answer;
}

}  // namespace dcs::commands
