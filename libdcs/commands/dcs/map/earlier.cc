#include "earlier.h"

#include <algorithm>
#include <utility>

#include "commands/dcs/query/grains.h"

namespace dcs::commands {
namespace {

std::vector<wire::GrainRow> grains_of(const Session &session) {
    Info info;
    if (!info.ask(wire::QueryType::grains, session.user, session.session)) return {};
    return std::move(info.grains);
}

class Looking {
public:
    Looking(const WholeMap &map, const Session *ours) : map_(map), known_(map.plan.inputs.size()) {
        if (ours == nullptr) return;
        for (const wire::GrainRow &row : grains_of(*ours))
            if (of_list(row.grain, known_.size())) known_[static_cast<std::size_t>(row.grain - 1)] = true;
    }

    void look(const Session &session) {
        const auto list = list_in(session.ident);
        const std::size_t inputs = list ? list->inputs : 0;
        if (inputs == 0 || inputs >= known_.size()) return;
        const auto end = known_.begin() + static_cast<std::ptrdiff_t>(inputs);
        const std::string base = ident_of(map_.plan, inputs);
        if (!is_run_of(session.ident, base) || std::find(known_.begin(), end, false) == end) return;
        if (const std::string changed = changed_since(session.ident, base, map_.files(inputs)); !changed.empty())
            return refuse(session, changed + " has changed since");
        bool asked = false;
        for (const wire::GrainRow &row : grains_of(session)) {
            if (!of_list(row.grain, inputs) || row.state != "finished" || is_failed(row)) continue;
            if (!std::exchange(asked, true) && !is_alike(session, row.grain))
                return refuse(session, "the environment or --output differs");
            const auto at = static_cast<std::size_t>(row.grain - 1);
            if (!known_[at])
                found.results.push_back({row.grain, session.session, row.out_length, row.err_length, row.cpu_s});
            known_[at] = true;
        }
    }

    EarlierResults found;

private:
    void refuse(const Session &session, const std::string &why) {
        if (found.refused.empty())
            found.refused = "session " + std::to_string(session.session) + " ran a shorter list, but " + why;
    }

    bool is_alike(const Session &session, std::int32_t grain) const {
        const auto now = grain_now(session.user, session.session, grain);
        return now && map_.alike(*now);
    }

    static bool of_list(std::int32_t grain, std::size_t inputs) {
        return grain >= 1 && static_cast<std::size_t>(grain) <= inputs;
    }

    const WholeMap &map_;
    std::vector<bool> known_;
};

}  // namespace

EarlierResults earlier_results(const std::vector<Session> &own, const WholeMap &map, const Session *ours) {
    Looking looking(map, ours);
    for (auto session = own.rbegin(); session != own.rend(); ++session)
        if (session->ident.rfind("map-", 0) == 0 && !session->damaged()) looking.look(*session);
    std::sort(looking.found.results.begin(), looking.found.results.end(),
              [](const EarlierResult &a, const EarlierResult &b) { return a.grain < b.grain; });
    return std::move(looking.found);
}

}  // namespace dcs::commands
