// Recovery of a damaged disk is crashed at every operation, too: the marker of a tree must outlast
// the turn roots that the damage was found in.
#include "crash/store/damage.h"
#include "crash/store/enumerator.h"
#include "store/names.h"
#include "support/catch.h"

namespace dcs::test {
namespace {

using namespace store;

struct Tally {
    std::uint64_t images = 0, states = 0, costly = 0, bad = 0;
    std::string first_bad;
};

// Some blocks of what waits on the disk, one at a time.
void damage_and_crash(const Workload &workload, unsigned variant, std::string_view plant, Tally &tally) {
    StoreOptions options = small_options(variant);
    options.flush_turns = 1000;
    options.flush_bytes = 1 << 20;
    Random random(variant);
    SimDisk disk(16);
    auto opened = Store::open(disk, test_forest(), options, nullptr);
    REQUIRE(opened);
    options.plant = plant;
    for (std::size_t turn = 1; turn <= workload.turns.size(); ++turn) {
        REQUIRE((*opened)->commit(workload.turns[turn - 1].updates).answer == Answer::done);
        const Files files = disk.files();
        for (const auto &[path, bytes] : files) {
            const bool text = path == applied_file || path == format_file;
            const bool journal = path == journal_file;
            const bool temporary = is_temporary(path) && !bytes.empty();
            const bool needed = text || journal || temporary || path.find(".commit") != path.npos;
            if (!needed || random.below(8) != 0) continue;
            const std::size_t block = options.layout.block;
            const std::size_t at = random.below(journal ? journal_end(disk) + 1 : bytes.size()) / block * block;
            for (SimDisk image : {disk.killed(), disk.crashed()}) {
                const SimDisk good = image.killed();
                image.damage(path, at, block, [](char c) { return static_cast<char>(~c); });
                const auto lost = trees_lost(good, image);
                Effort effort;
                effort.stop_at_first = true;
                effort.nested = 4;
                effort.nested_one_in = 1;
                effort.deep_one_in = 4;
                effort.max_states = 500;
                Enumerator run(workload, options, effort, turn * 131 + variant);
                run.run_damaged(image, turn, lost);
                ++tally.images;
                tally.costly += !lost.empty();
                tally.states += run.states;
                if (run.bad > 0 && tally.bad++ == 0) tally.first_bad = path + ": " + run.first_bad;
                if (!plant.empty() && tally.bad > 0) return;
            }
        }
    }
}

void print(const char *what, const Tally &t) {
    const auto n = [](std::uint64_t x) { return static_cast<unsigned long long>(x); };
    std::printf("%s: %llu damaged disks (%llu cost a tree), %llu states, %llu bad%s%s\n", what, n(t.images),
                n(t.costly), n(t.states), n(t.bad), t.bad ? ": " : "", t.first_bad.c_str());
}

}  // namespace

TEST_CASE("the recovery of a damaged disk may be crashed") {
    Tally tally;
    for (unsigned variant = 0; variant < 6; ++variant) {
        damage_and_crash(written_workload(), variant, {}, tally);
        damage_and_crash(drawn_workload(variant, 6), variant, {}, tally);
    }
    print("damage and crashes", tally);
    INFO(tally.first_bad);
    CHECK(tally.bad == 0);
    CHECK(tally.costly > 20);
    CHECK(tally.states > 30'000);
}

TEST_CASE("planted bugs of the markers are caught") {
    for (const char *const plant : {"no_sync_marker", "trust_visible_marker"}) {
        Tally tally;
        for (unsigned variant = 0; variant < 12 && tally.bad == 0; ++variant)
            damage_and_crash(written_workload(), variant, plant, tally);
        print(plant, tally);
        CHECK(tally.bad > 0);
    }
}

}  // namespace dcs::test
