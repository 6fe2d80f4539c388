#include "crash/store/enumerator.h"

#include "store/names.h"

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
    options.reserve_bytes = variant % 2 ? 0 : variant % 8 == 2 ? 40 : 6000;
    options.append_inline_limit = options.inline_limit;
    options.step_room = 20;
    options.turn_room = 200;
    // None, one that most turns fit into only once or twice, one with room for all.
    const std::size_t journals[] = {0, 4096, 64 * 1024};
    options.journal_bytes = journals[variant / 2 % 3];
    options.journal_turn_bytes = options.journal_bytes;
    options.behind_turns = variant % 4 == 3 ? 0 : 2 + variant % 3;
    const std::size_t twice_limits[] = {8192, 0, 60};
    options.layout = {64, twice_limits[variant / 2 % 3]};
    return options;
}

namespace {

// Of a full disk nothing is free after the crash either: what became free another caller has taken.
void limit(SimDisk &state, const SimDisk &disk) {
    if (disk.capacity() != ~0ull) state.set_capacity(state.used_bytes());
}

}  // namespace

void Enumerator::wrong(const std::string &what) {
    if (bad++ == 0) first_bad = workload_.name + ": " + what;
}

void Enumerator::point(const SimDisk &disk, std::size_t low, std::size_t high, int depth) {
    if (enough() || (depth > 0 && random_.below(effort_.nested_one_in) != 0)) return;
    ++points;
    bool all = true;
    for (const CrashModel model : {CrashModel::weak, CrashModel::journal}) {
        const std::size_t max = depth > 0 ? effort_.nested : model == CrashModel::weak ? effort_.weak : effort_.journal;
        const auto wanted = [&](std::uint64_t hash) {
            ++generated;
            return !enough() && seen_.insert((hash * 31 + low) * 31 + high).second;
        };
        all &= disk.each_crash(model, max, random_.next(), wanted, [&](SimDisk &state) {
            limit(state, disk);
            if (depth > 0) ++nested;
            const bool deep = depth < 2 && random_.below(effort_.deep_one_in) == 0;
            check(state, low, high, depth, deep,
                  model == CrashModel::weak ? "power failure (weak)" : "power failure (journal)");
        });
    }
    if (all) ++all_of;
    if (depth > (damaged_ ? 1 : 0)) return;
    // The process is killed, the machine runs on: everything is visible, little of it is durable.
    SimDisk killed = disk.killed();
    limit(killed, disk);
    check(killed, low, high, depth, random_.below(10) == 0, "kill");
}

void Enumerator::check(SimDisk &state, std::size_t low, std::size_t high, int depth, bool deep, const char *how) {
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
    if (turn < low || turn > high) return wrong(where + "recovery came to turn " + std::to_string(turn));
    if (!damaged_ && !report.damaged.empty())
        return wrong(where + report.damaged[0].path + ": " + report.damaged[0].what);
    Files trees = trees_of(state), expected = workload_.states[turn];
    if (!leave_out(trees, set_aside_)) return wrong(where + "a damaged tree is not set aside");
    for (const std::string &directory : set_aside_) expected[store::marker_of(directory)];
    (void)leave_out(expected, set_aside_);
    if (trees != expected) return wrong(where + "the trees are not those of turn " + std::to_string(turn));
    const Files own = state.files("turns");
    if (own.size() != 1 || own.begin()->first != "turns/applied") return wrong(where + "something is left in turns/");
    state.set_capacity(~0ull);
    if (deep || random_.below(48) == 0) go_on(state, store, depth);
}

// What recovery showed must outlast the next power failure, and the store must go on working.
void Enumerator::go_on(SimDisk &state, Store &store, int depth) {
    const std::size_t turn = store.turn();
    point(state, turn, turn, depth + 1);
    if (turn == workload_.turns.size() || depth > 1 || damaged_) return;
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

// Of a turn that finds the disk full: ordinarily it is refused, unless a flush made room, and then
// the reserve is whole; with the reserve it is done, even if all else is taken at the commit.
bool Enumerator::commit(SimDisk &disk, Store &store, const Workload::Turn &turn) {
    store::CommitResult result;
    if (!turn.full_disk || options_.reserve_bytes < 1000) {
        result = store.commit(turn.updates);
    } else {
        disk.set_capacity(disk.used_bytes() + random_.below(20));
        result = store.commit(turn.updates);
        const auto reserve = disk.size("reserve");
        if (result.answer == Answer::done && (!reserve || *reserve != options_.reserve_bytes))
            wrong("an ordinary commit has eaten from the reserve");
        if (result.answer == Answer::nothing && result.status.code == Code::no_space) {
            const std::string root = store::root_name(store.turn() + 1);
            const auto watch = disk.after_operation;
            bool taken = false;
            disk.after_operation = [&] {
                if (!taken && disk.size(root)) {
                    taken = true;
                    disk.set_capacity(disk.used_bytes());
                }
                if (watch) watch();
            };
            result = store.commit(turn.updates, store::Room::reserve);
            ++reserve_commits;
            disk.after_operation = watch;
        }
    }
    disk.set_capacity(~0ull);
    if (result.answer != Answer::done) wrong("commit: " + result.status.text);
    return result.answer == Answer::done;
}

void Enumerator::run_damaged(const SimDisk &image, std::size_t turn, const std::set<std::string> &set_aside) {
    damaged_ = true;
    set_aside_ = set_aside;
    SimDisk state = image.killed();
    check(state, turn, turn, 0, true, "damage");
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
        if (!commit(disk, **opened, turn)) return;
        acknowledged = (*opened)->turn();
        if (acknowledged != started) return wrong("a turn was not counted");
        point(disk, acknowledged, started, 0);
        if (turn.flush_after && (*opened)->flush().answer != Answer::done) return wrong("flush failed");
    }
}

}  // namespace dcs::test
