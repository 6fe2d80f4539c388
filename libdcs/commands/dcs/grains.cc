#include "grains.h"

#include <algorithm>
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

}  // namespace

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
