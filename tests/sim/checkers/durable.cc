#include "sim/checkers/durable.h"

#include "crash/scheduler/durable.h"

namespace dcs::sim {
namespace {

// The first lines that differ.
std::string difference(const std::string &was, const std::string &is) {
    std::size_t at = 0;
    while (at < was.size() && at < is.size() && was[at] == is[at]) ++at;
    const std::size_t start = at == 0 ? std::string::npos : was.rfind('\n', at - 1);
    const std::size_t from = start == std::string::npos ? 0 : start + 1;
    return "`" + was.substr(from, was.find('\n', at) - from) + "`, now `" + is.substr(from, is.find('\n', at) - from) +
           "`";
}

}  // namespace

void Durable::lost(const core::State &state, bool in_flight, std::uint64_t turn) {
    before_ = test::durable_text(state);
    turn_ = turn + (in_flight ? 1 : 0);
    last_turn_ = turn;
    if (!in_flight) next_seniority_ = state.next_seniority;
}

void Durable::started(const core::State &state, store::Store &store) {
    if (const std::string what = core::check(state); !what.empty())
        return clock_.complain("state", "after the start: " + what);
    if (before_) {
        if (store.turn() < last_turn_)
            return clock_.complain("durable", "turn " + std::to_string(last_turn_) + " was acknowledged, found is " +
                                                  std::to_string(store.turn()));
        const std::string now = test::durable_text(state);
        if (store.turn() == turn_ && now != *before_)
            return clock_.complain("durable", "turn " + std::to_string(turn_) +
                                                  " is rebuilt as another one: " + difference(*before_, now));
    }
    if (const std::string what = test::compare_logs(store, state); !what.empty())
        return clock_.complain("event log", what);
    const test::SimDisk *disk = medium_.sim();
    if (!disk) return;
    if (const std::string what = test::compare_trees(disk->files("sessions"), state); !what.empty())
        return clock_.complain("left-overs", what);
    for (const auto &[path, bytes] : disk->files())
        if (path.size() > 4 && path.compare(path.size() - 4, 4, ".tmp") == 0)
            return clock_.complain("left-overs", path);
    check_space(state, store);
}

void Durable::compare(const core::State &state, store::Store &store) {
    auto rebuilt = record::rebuild(store, clock_.now);
    if (!rebuilt) return clock_.complain("durable", rebuilt.status().text);
    const std::string is = test::durable_text(state), would_be = test::durable_text(rebuilt->state);
    if (is != would_be) return clock_.complain("durable", "the State would be rebuilt as " + difference(is, would_be));
    if (const std::string what = test::compare_logs(store, state); !what.empty())
        return clock_.complain("event log", what);
    check_space(state, store);
}

void Durable::check_space(const core::State &state, store::Store &store) {
    const test::SimDisk *disk = medium_.sim();
    if (!disk) return;
    std::uint64_t data = 64 * 1024 + 256 * state.hosts.size() + 256 * state.auth.size();
    for (const auto &[key, session] : state.sessions) {
        data += session.info.inputs_length + session.info.results_length + session.info.grains_live + 4096;
        data += session.info.events_length;
        for (const auto &[number, g] : session.grains) {
            if (!g.own_tree) continue;
            data += g.course->checkpoint_length + g.course->out_length + g.course->err_length +
                    g.course->message_length + 4096;
            if (g.params_own_file) data += g.params_length;
        }
    }
    if (clock_.plan.contents)  // they lie beside the update trees, as long as a party may want them
        for (const auto &[path, bytes] : disk->files("library")) data += bytes.size();
    const std::uint64_t most =
        2 * data + 2 * store.pending_bytes() + clock_.plan.store.reserve_bytes + clock_.plan.store.journal_bytes;
    if (disk->used_bytes() > most)
        clock_.complain("store bound", std::to_string(disk->used_bytes()) + " bytes are used, at most " +
                                           std::to_string(most) + " may be");
}

}  // namespace dcs::sim
