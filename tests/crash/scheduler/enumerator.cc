#include "crash/scheduler/enumerator.h"

#include "scheduler/record/paths.h"

namespace dcs::test {

store::StoreOptions small_limits(std::uint64_t seed, bool long_log) {
    Random random(seed);
    const auto one_of = [&](std::initializer_list<std::size_t> list) {
        return list.begin()[random.below(list.size())];
    };
    store::StoreOptions options;
    options.inline_limit = one_of({0, 400, 400, 1200, 100'000});
    options.flush_turns = one_of({1, 2, 3, 5, 8, 50});
    options.sync_all_above = one_of({0, 16, 1000});
    options.flush_bytes = one_of({4000, 1'000'000, 1'000'000});
    options.reserve_bytes = one_of({40, 6000});
    options.journal_bytes = one_of({0, 16'384, 65'536, 65'536});
    options.journal_turn_bytes = options.journal_bytes;
    options.behind_turns = one_of({0, 2, 4, 64});
    options.turn_room = 512;
    options.step_room = 64;
    if (!long_log) return options;
    // The log is renewed while appends to it are pending, if the limits let them be.
    options.inline_limit = one_of({400, 100'000, 100'000});
    options.flush_turns = one_of({3, 5, 50});
    options.flush_bytes = 1'000'000;
    return options;
}

Enumerator::Enumerator(std::uint64_t seed, Effort effort, std::string_view plant)
    : long_log_(seed % 3 == 1), options_(small_limits(seed, long_log_)), effort_(effort), random_(seed), seed_(seed) {
    options_.plant = plant;
    if (effort_.root_files) options_.journal_bytes = options_.journal_turn_bytes = 0;
}

void Enumerator::wrong(const std::string &what) {
    if (bad++ == 0) first_bad = "seed " + std::to_string(seed_) + ", " + what;
}

void Enumerator::take(const World &world) {
    if (!world.wrong.empty()) wrong("without a crash: " + world.wrong);
    counts.add(world.counts);
}

void Enumerator::point(const SimDisk &disk, const Moment &moment, int depth) {
    if (enough() || (depth > 0 && random_.below(effort_.nested_one_in) != 0)) return;
    ++points;
    bool all = true;
    for (const CrashModel model : {CrashModel::weak, CrashModel::journal}) {
        const bool weak = model == CrashModel::weak;
        const std::size_t max = depth > 0 ? effort_.nested : weak ? effort_.weak : effort_.journal;
        const auto wanted = [&](std::uint64_t hash) {
            ++generated;
            return !enough() && seen_.insert((hash * 31 + moment.low->turn) * 31 + moment.high->turn).second;
        };
        all &= disk.each_crash(model, max, random_.next(), wanted, [&](SimDisk &state) {
            if (depth > 0) ++nested;
            const bool deep = depth < 2 && random_.below(effort_.deep_one_in) == 0;
            check(state, moment, depth, deep, weak ? "power failure (weak)" : "power failure (journal)");
        });
    }
    if (all) ++all_of;
    if (depth > 0 || random_.below(effort_.kill_one_in) != 0) return;
    SimDisk killed = disk.killed();
    check(killed, moment, 0, random_.below(effort_.deep_one_in) == 0, "kill");
}

// What a scheduler finds that is started on `state`: "" if it is one of the two turns, whole.
std::string Enumerator::recover(SimDisk &state, const Moment &moment, int depth, bool deep, SnapshotPtr &found) {
    if (deep) state.after_operation = [&] { point(state, moment, depth + 1); };
    store::RecoveryReport report;
    auto opened = store::Store::open(state, record::forest(), options_, &report);
    state.after_operation = nullptr;
    if (!opened) return opened.status().text;
    if (!report.damaged.empty()) return report.damaged[0].path + " was set aside: " + report.damaged[0].what;
    if (report.turns_finished > 1) ++replayed;
    store::Store &store = **opened;
    auto rebuilt = record::rebuild(store, moment.world->people.clock);
    if (!rebuilt) return rebuilt.status().text;
    if (!rebuilt->reports.empty()) return rebuilt->reports[0];
    if (std::string what = core::check(rebuilt->state); !what.empty()) return what;
    const std::uint64_t turn = store.turn();
    if (turn != moment.low->turn && turn != moment.high->turn) return "recovery came to turn " + std::to_string(turn);
    found = turn == moment.low->turn ? moment.low : moment.high;
    if (durable_text(rebuilt->state) != found->text) return "the state is not that of turn " + std::to_string(turn);
    if (std::string what = compare_bytes(store, rebuilt->state, *found); !what.empty()) return what;
    if (std::string what = compare_trees(state.files("sessions"), rebuilt->state); !what.empty()) return what;
    if (std::string what = compare_logs(store, rebuilt->state); !what.empty()) return what;
    return moment.world->people.ledger.broken_by(rebuilt->state);
}

void Enumerator::check(SimDisk &state, const Moment &moment, int depth, bool deep, const char *how) {
    ++states;
    SnapshotPtr found;
    if (std::string what = recover(state, moment, depth, deep, found); !what.empty())
        return wrong(std::string(how) + " at depth " + std::to_string(depth) + ", turns " +
                     std::to_string(moment.low->turn) + ".." + std::to_string(moment.high->turn) + ": " + what);
    if (depth < 2 && (deep || random_.below(effort_.go_on_one_in) == 0)) go_on(state, moment, found, depth);
}

// What recovery showed must outlast the next crash, and the world must go on on it.
void Enumerator::go_on(SimDisk &state, const Moment &moment, const SnapshotPtr &found, int depth) {
    point(state, Moment{moment.world, found, found}, depth + 1);
    if (enough()) return;
    ++went_on;
    World next(*moment.world, state.killed(), found, random_.next());
    next.watch = [&] { point(next.disk, Moment{&next, next.low, next.high}, depth + 1); };
    next.disk.after_operation = next.watch;
    if (next.start())
        for (int i = 0; i < 3 && !enough(); ++i) next.step();
    take(next);
}

void Enumerator::run() {
    World world(options_, seed_);
    if (world.start() && long_log_) world.grow_a_log();
    for (int i = 0; !long_log_ && i < effort_.steps_before && world.wrong.empty(); ++i) world.step();
    world.watch = [&] { point(world.disk, Moment{&world, world.low, world.high}, 0); };
    world.disk.after_operation = world.watch;
    for (int i = 0; i < (long_log_ ? effort_.steps / 3 : effort_.steps) && world.wrong.empty() && !enough(); ++i) {
        world.step();
        if (random_.below(20) == 0) world.restart(random_.chance(50));
    }
    take(world);
}

}  // namespace dcs::test
