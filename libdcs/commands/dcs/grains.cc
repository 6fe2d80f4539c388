#include "grains.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

namespace dcs::commands {
namespace {

struct State {
    const char *name;
    int query;
};
constexpr State states[] = {{"", D_Q_GRAINS},         {"ready", D_Q_READY},
                            {"running", D_Q_RUNNING}, {"finished", D_Q_FINISHED},
                            {"killed", D_Q_KILLED},   {"failed", D_Q_FINISHED}};

// So many grains that are named one by one are asked for one by one: a session may have a million.
constexpr std::int64_t asked_one_by_one = 64;

std::int64_t named(const std::vector<GrainRange> &ranges) {
    std::int64_t count = ranges.empty() ? asked_one_by_one + 1 : 0;
    for (const GrainRange &range : ranges) count += std::int64_t{range.last} - range.first + 1;
    return count;
}

// False: it has to be done otherwise (details of somebody else's grains are not shown).
bool ask_one_by_one(const Session &session, const std::vector<GrainRange> &ranges, GrainsAnswer &answer) {
    for (const GrainRange &range : ranges) {
        for (std::int64_t number = range.first; number <= range.last; ++number) {
            auto info = std::make_shared<Info>();
            const int error = info->ask(D_Q_GRAIN, session.user, session.number, static_cast<int>(number));
            if (error == D_E_GRAIN_UNKNOWN) continue;
            if (error != NO_ERROR) return false;
            if ((*info)->grain_count == 0) continue;
            answer.rows.push_back(&(*info)->grains[0]);
            answer.infos.push_back(std::move(info));
        }
    }
    const auto before = [](const d_grain_row *a, const d_grain_row *b) { return a->grain < b->grain; };
    const auto same = [](const d_grain_row *a, const d_grain_row *b) { return a->grain == b->grain; };
    std::sort(answer.rows.begin(), answer.rows.end(), before);
    answer.rows.erase(std::unique(answer.rows.begin(), answer.rows.end(), same), answer.rows.end());
    return true;
}

}  // namespace

ChosenGrains choose_grains(const std::vector<std::string> &selectors, bool bare_session,
                           const std::string &state) {
    ChosenGrains chosen;
    for (const std::string &word : selectors) {
        const auto selector = grain_selector(word, bare_session);
        if (!selector) {
            chosen.failure = usage_failure(selector.status().text);
            return chosen;
        }
        const SessionsAnswer sessions = sessions_of(selector->session);
        if (sessions.failed) {
            chosen.failure = sessions.failure;
            return chosen;
        }
        GrainsAnswer answer = grains_of(sessions.sessions[0], selector->ranges, state);
        if (answer.failed) {
            chosen.failure = answer.failure;
            return chosen;
        }
        if (answer.rows.empty() && !selector->ranges.empty() && state.empty()) {
            chosen.failure = not_found_failure(
                "there is no grain " + word,
                "`dcs grain ls " + sessions.sessions[0].name() + "` lists those that there are");
            chosen.failure->code = "grain_unknown";
            return chosen;
        }
        for (const d_grain_row *row : answer.rows) {
            chosen.grains.rows.push_back(row);
            chosen.sessions.push_back(sessions.sessions[0].name());
            chosen.named_alone.push_back(selector->one());
        }
        for (auto &info : answer.infos) chosen.grains.infos.push_back(std::move(info));
    }
    return chosen;
}

void print_grain_names(const ChosenGrains &chosen) {
    for (std::size_t i = 0; i < chosen.grains.count(); ++i) std::printf("%s\n", chosen.name(i).c_str());
}

bool is_grain_state(const std::string &state) {
    return std::any_of(std::begin(states), std::end(states),
                       [&](const State &s) { return state == s.name; });
}

bool is_failed(const d_grain_row &row) {
    return std::strcmp(row.state, "finished") == 0 && (row.exit_code != 0 || row.signal != 0);
}

GrainsAnswer grains_of(const Session &session, const std::vector<GrainRange> &ranges,
                       const std::string &state) {
    GrainsAnswer answer;
    if (state.empty() && named(ranges) <= asked_one_by_one) {
        if (ask_one_by_one(session, ranges, answer)) return answer;
        answer = GrainsAnswer();
    }
    int query = D_Q_GRAINS;
    for (const State &s : states)
        if (state == s.name) query = s.query;
    auto info = std::make_shared<Info>();
    const int error = info->ask(query, session.user, session.number);
    if (error != NO_ERROR) {
        answer.failed = true;
        answer.failure = call_failure("the grains of session " + session.name(), error);
        return answer;
    }
    GrainSelector selector;
    selector.ranges = ranges;
    for (std::size_t i = 0; i < (*info)->grain_count; ++i) {
        const d_grain_row &row = (*info)->grains[i];
        if (selector.has(row.grain) && (state != "failed" || is_failed(row)))
            answer.rows.push_back(&row);
    }
    answer.infos.push_back(std::move(info));
    return answer;
}

}  // namespace dcs::commands
