#include "crash/store/enumerator.h"

namespace dcs::test {

using store::Answer;
using store::Store;

store::StoreOptions small_options(unsigned variant) {
    store::StoreOptions options;
    const std::size_t inline_limits[] = {24, 0, 24, 1000};
    const std::size_t flush_turns[] = {3, 2, 4, 100, 1, 3};
    const std::size_t sync_all_above[] = {16, 1000, 0};
    options.inline_limit = inline_limits[variant % 4];
    options.flush_turns = flush_turns[variant % 6];
    options.sync_all_above = sync_all_above[variant % 3];
    options.flush_bytes = variant % 5 == 4 ? 300 : 100000;
    options.reserve_bytes = variant % 2 ? 0 : 40;
    return options;
}

void Enumerator::wrong(const std::string &what) {
    if (bad++ == 0) first_bad = workload_.name + ": " + what;
}

void Enumerator::point(const SimDisk &disk, std::size_t low, std::size_t high, int depth) {
    if (enough() || (depth > 0 && random_.below(effort_.nested_one_in) != 0)) return;
    ++points;
    bool all = true;
    for (const CrashModel model : {CrashModel::weak, CrashModel::journal}) {
        const std::size_t max = depth > 0                    ? effort_.nested
                                : model == CrashModel::weak ? effort_.weak
                                                            : effort_.journal;
        const auto wanted = [&](std::uint64_t hash) {
            ++generated;
            return !enough() && seen_.insert((hash * 31 + low) * 31 + high).second;
        };
        all &= disk.each_crash(model, max, random_.next(), wanted, [&](SimDisk &state) {
            if (depth > 0) ++nested;
            const bool deep = depth < 2 && random_.below(effort_.deep_one_in) == 0;
            check(state, low, high, depth, deep,
                  model == CrashModel::weak ? "power failure (weak)" : "power failure (journal)");
        });
    }
    if (all) ++all_of;
    if (depth > 0) return;
    // The process is killed, the machine runs on: everything is visible, little of it is durable.
    SimDisk killed = disk.killed();
    check(killed, low, high, 0, random_.below(10) == 0, "kill");
}

void Enumerator::check(SimDisk &state, std::size_t low, std::size_t high, int depth, bool deep,
                       const char *how) {
    ++states;
    const std::string where = std::string(how) + " at depth " + std::to_string(depth) + ", turns " +
                              std::to_string(low) + ".." + std::to_string(high) + ": ";
    if (deep) state.after_operation = [&] { point(state, low, high, depth + 1); };
    store::RecoveryReport report;
    auto opened = Store::open(state, test_forest(), options_, &report);
    state.after_operation = nullptr;
    if (!opened) return wrong(where + opened.status().text);
    Store &store = **opened;
    const std::size_t turn = store.turn();
    if (turn < low || turn > high)
        return wrong(where + "recovery came to turn " + std::to_string(turn));
    if (!report.damaged.empty()) return wrong(where + report.damaged[0] + " was set aside");
    if (trees_of(state) != workload_.states[turn])
        return wrong(where + "the trees are not those of turn " + std::to_string(turn));
    const Files own = state.files("turns");
    if (own.size() != 1 || own.begin()->first != "turns/applied")
        return wrong(where + "something is left in turns/");
    if (deep || random_.below(48) == 0) go_on(state, store, depth);
}

// What recovery showed must outlast the next power failure, and the store must go on working.
void Enumerator::go_on(SimDisk &state, Store &store, int depth) {
    const std::size_t turn = store.turn();
    point(state, turn, turn, depth + 1);
    if (turn == workload_.turns.size() || depth > 1) return;
    state.after_operation = [&] { point(state, turn, turn + 1, depth + 1); };
    const auto result = store.commit(workload_.turns[turn].updates);
    state.after_operation = nullptr;
    if (result.answer != Answer::done) return wrong("after a recovery: " + result.status.text);
    if (trees_of(state) == workload_.states[turn + 1]) {
        point(state, turn + 1, turn + 1, depth + 1);
        return;
    }
    // Temporaries that wait for the flush are no difference.
    if (store.flush().answer != Answer::done || trees_of(state) != workload_.states[turn + 1])
        return wrong("after a recovery the next turn was not applied");
    point(state, turn + 1, turn + 1, depth + 1);
}

void Enumerator::run(bool creation) {
    SimDisk disk(16);
    std::size_t acknowledged = 0, started = 0;
    const auto watch = [&] { point(disk, acknowledged, started, 0); };
    if (creation) disk.after_operation = watch;
    auto opened = Store::open(disk, test_forest(), options_, nullptr);
    disk.after_operation = watch;
    if (!opened) return wrong(opened.status().text);
    for (const Workload::Turn &turn : workload_.turns) {
        if (enough()) return;
        ++started;
        const auto result = (*opened)->commit(turn.updates);
        if (result.answer != Answer::done) return wrong("commit: " + result.status.text);
        acknowledged = (*opened)->turn();
        if (acknowledged != started) return wrong("a turn was not counted");
        point(disk, acknowledged, started, 0);
        if (turn.flush_after && (*opened)->flush().answer != Answer::done)
            return wrong("flush failed");
    }
}

}  // namespace dcs::test
