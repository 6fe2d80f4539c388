#include "earlier.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <sys/stat.h>
#include <utility>

#include "commands/dcs/query/grains.h"
#include "commands/dcs/query/session_events.h"
#include "commands/dcs/run/placeholders.h"

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
        std::int32_t first = -1;  // that succeeded, else of all: it may have begun again in another environment
        bool succeeded = false;
        for (const wire::GrainRow &row : grains_of(*ours)) {
            if (!of_list(row.grain, known_.size())) continue;
            known_[static_cast<std::size_t>(row.grain - 1)] = true;
            const bool better = !succeeded && row.state == "finished" && !is_failed(row);
            if (first < 0 || better) first = row.grain;
            succeeded = succeeded || better;
        }
        if (auto row = grain_now(ours->user, ours->session, first)) environment_ = std::move(row->env);
    }

    void look(const Session &session) {
        const auto list = list_in(session.ident);
        const std::size_t inputs = list ? list->inputs : 0;
        if (inputs == 0 || inputs >= known_.size()) return;
        const auto end = known_.begin() + static_cast<std::ptrdiff_t>(inputs);
        const std::string base = ident_of(map_.plan, inputs);
        if (!is_run_of(session.ident, base) || std::find(known_.begin(), end, false) == end) return;
        const std::string recorded = fingerprint_in(session.ident, base);
        if (const std::string changed = changed_under(session, recorded, map_.files(inputs), map_.plan, map_.words);
            !changed.empty())
            return refuse(session, inputs, changed + " has changed since");
        bool asked = false;
        for (const wire::GrainRow &row : grains_of(session)) {
            const bool runs = !is_over(row) && !session.terminated();
            const bool succeeded = row.state == "finished" && !is_failed(row);
            if (!of_list(row.grain, inputs) || (!runs && !succeeded)) continue;
            if (!std::exchange(asked, true) && !is_alike(session, row.grain))
                return refuse(session, inputs, "the environment or --output differs");
            const auto at = static_cast<std::size_t>(row.grain - 1);
            if (!known_[at])
                found_.results.push_back({row.grain, session.session, row.out_length, row.err_length, row.cpu_s, runs});
            known_[at] = true;
        }
    }

    EarlierResults end() {
        // Others may have all of them.
        if (std::find(known_.begin(), known_.begin() + refused_, false) == known_.begin() + refused_)
            found_.refused.clear();
        std::sort(found_.results.begin(), found_.results.end(),
                  [](const EarlierResult &a, const EarlierResult &b) { return a.grain < b.grain; });
        return std::move(found_);
    }

private:
    void refuse(const Session &session, std::size_t inputs, const std::string &why) {
        const std::string number = std::to_string(session.session);
        const bool runs = session.ready + session.running > 0 && !session.terminated();
        if (!found_.refused.empty()) return;
        refused_ = static_cast<std::ptrdiff_t>(inputs);
        found_.refused = "session " + number + (runs ? " runs" : " ran") + " a shorter list" +
                         (runs ? " (`dcs session close " + number + "` ends it)" : "") + ", but " + why;
    }

    bool is_alike(const Session &session, std::int32_t grain) const {
        const auto now = grain_now(session.user, session.session, grain);
        return now && map_.alike(*now, environment_ ? &*environment_ : nullptr);
    }

    static bool of_list(std::int32_t grain, std::size_t inputs) {
        return grain >= 1 && static_cast<std::size_t>(grain) <= inputs;
    }

    const WholeMap &map_;
    std::vector<bool> known_;
    std::optional<std::vector<std::string>> environment_;
    EarlierResults found_;
    std::ptrdiff_t refused_ = 0;  // so many inputs
};

}  // namespace

EarlierResults earlier_results(const std::vector<Session> &own, const WholeMap &map, const Session *ours) {
    Looking looking(map, ours);
    for (auto session = own.rbegin(); session != own.rend(); ++session)
        if (session->ident.rfind("map-", 0) == 0 && !session->damaged()) looking.look(*session);
    return looking.end();
}

std::string changed_after_its_grain(const Session &session, const MapPlan &plan, const FileWords &words) {
    const auto history = history_of(session);
    if (!history) return "";
    std::map<std::string, std::int64_t> ended_ms;  // by input: the last of its grains
    for (const auto &[number, grain] : history->grains) {
        if (number < 1 || number > std::ssize(plan.inputs)) continue;
        const bool runs = grain.state == wire::GrainState::running;
        const bool succeeded = grain.state == wire::GrainState::finished && grain.code == 0 && grain.signal == 0;
        if (!runs && !succeeded) continue;
        const std::string &input = plan.inputs[static_cast<std::size_t>(number - 1)];
        const FileWords brought = words.for_input(input, number);
        std::vector<std::string> names = columns_of(input);
        names.push_back(place_brought(plan, brought.input));
        for (const FileWords::Pair &file : brought.files) names.push_back(place_brought(plan, file.path));
        for (const std::string &name : names) {
            std::int64_t &last = ended_ms[name];
            last = std::max(last, runs ? INT64_MAX : grain.ended_ms);
        }
    }
    for (const auto &[name, last] : ended_ms) {
        struct stat st = {};
        const std::string path = name.starts_with('/') ? name : plan.directory + "/" + name;
        if (::stat(path.c_str(), &st) != 0 || !S_ISREG(st.st_mode)) continue;
        // Which a file also gets that is moved to its place.
        if (std::int64_t{st.st_ctim.tv_sec} * 1000 + st.st_ctim.tv_nsec / 1'000'000 > last) return name;
    }
    return "";
}

std::string changed_under(const Session &session, const std::string &recorded, const std::vector<MapFile> &files,
                          const MapPlan &plan, const FileWords &words) {
    const std::string changed = changed_in_command(recorded, files);
    if (!changed.empty() || changed_in_inputs(recorded, files).empty()) return changed;
    return changed_after_its_grain(session, plan, words);
}

}  // namespace dcs::commands
