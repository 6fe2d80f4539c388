// The copy of the store on a simulated disk: after every operation of the backup's disk, every state that a power
// failure could leave there is recovered. The copy must be whole as soon as it ever was said to be, as far as was
// acknowledged or a turn further, byte for byte what the scheduler's store was after that turn, with every content that
// was acknowledged; and from there it must find its way to what the store is now.
#include <cstdio>
#include <cstdlib>

#include "unit/mirror/bench.h"

namespace dcs::mirror_test {
namespace {

class Enumerator {
public:
    Enumerator(std::uint64_t seed, std::string_view plant, std::size_t states_a_point)
        : random_(seed),
          states_a_point_(states_a_point),
          b_(seed % 2 == 0 ? turn::MirrorMode::sync : turn::MirrorMode::lagging) {
        b_.plant = plant;
        b_.window_bytes = 1500;
        b_.backlog_bytes = 4000;
        b_.open_scheduler();
    }

    void run(int steps) {
        b_.copy_disk.after_operation = [this] { look(); };
        for (int i = 0; i < steps && bad.empty(); ++i) act();
        b_.copy_disk.after_operation = nullptr;
        if (!bad.empty()) return;
        if (!b_.connected) connect();
        b_.deliver_all();
        if (b_.copied() != b_.history[b_.store->turn()]) bad = "in the end the copy is not the store";
    }

    std::uint64_t states = 0, copies = 0;
    std::string bad;

private:
    void connect() {
        if (std::string why = b_.connect(); !why.empty()) bad = "connecting: " + why;
    }
    void act() {
        const std::uint64_t what = random_.below(100);
        if (!b_.connected && what < 40) return connect();
        if (what < 55) {
            for (std::uint64_t n = 1 + random_.below(6); n > 0; --n) deliver();
            return;
        }
        if (what < 58) return b_.disconnect();
        if (what < 60) return b_.open_scheduler();
        if (what < 66) {
            const std::string digest(limits::digest_bytes, static_cast<char>('A' + random_.below(20)));
            if (!b_.library->find(digest)) b_.add_content(digest, std::string(random_.below(300), digest[0]));
            return;
        }
        if (b_.mirror->holds()) return;
        commit();
    }
    void deliver() {
        const bool whole = b_.copy && b_.copy->copying();
        b_.deliver();
        copies += whole && b_.copy && !b_.copy->copying();
    }
    void commit() {
        const std::string tree = "t/" + std::to_string(random_.below(4));
        const std::size_t sizes[] = {1, 30, 150, 500, 900};
        const std::string bytes(sizes[random_.below(5)], static_cast<char>('a' + b_.store->turn() % 26));
        const std::uint64_t what = random_.below(10);
        if (what == 0) {
            b_.lengths.erase(tree);
            b_.commit({{tree, "tree", {}, true}});
        } else if (what == 1) {  // the log written again, shorter
            b_.lengths[tree] = bytes.size();
            b_.commit({{tree, "tree", {{"log", bytes, 0}, {"status", "anew", 0}}, false}});
        } else if (what < 4) {
            b_.commit({{tree, "tree", {{"big", bytes + bytes, 0}, {"status", bytes.substr(0, 10), 0}}, false}});
        } else {
            b_.append(tree, bytes);
        }
    }
    void recover(const test::SimDisk &state) {
        ++states;
        if (!bad.empty()) return;
        test::SimDisk disk = state.killed();
        auto copy = backup::Copy::open(disk, small_store());
        if (!copy) return complain("it does not open: " + copy.status().text);
        if (b_.promised_turn == 0 && !(*copy)->whole()) return;
        if (!(*copy)->whole()) return complain("it is not whole any more: " + (*copy)->spoilt());
        const std::uint64_t turn = (*copy)->turn();
        if (turn < b_.promised_turn) return complain("an acknowledged turn is lost");
        const auto then = b_.history.find(turn);
        if (then == b_.history.end()) return complain("it is ahead of the store");
        if (Bench::copied(disk) != then->second) return complain("it is not what the store was after its turn");
        for (const auto &[digest, bytes] : b_.promised_contents) {
            const auto there = disk.read(library::path_of(digest), 0, 1u << 20);
            if (!there || *there != bytes) return complain("an acknowledged content is lost");
        }
    }
    void complain(const std::string &what) {
        bad = what + " (acknowledged up to turn " + std::to_string(b_.promised_turn) + ", the store is at " +
              std::to_string(b_.store->turn()) + ")";
    }
    void look() {
        if (!bad.empty()) return;
        for (const auto model : {test::CrashModel::weak, test::CrashModel::journal})
            b_.copy_disk.each_crash(
                model, states_a_point_, random_.next(), [](std::uint64_t) { return true; },
                [&](test::SimDisk &state) { recover(state); });
        recover(b_.copy_disk);  // killed, the machine stayed up
    }

    test::Random random_;
    const std::size_t states_a_point_;
    Bench b_;
};

std::string first_bad(std::string_view plant, std::uint64_t seeds) {
    for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
        Enumerator run(seed, plant, 12);
        run.run(60);
        if (!run.bad.empty()) return "seed " + std::to_string(seed) + ": " + run.bad;
    }
    return {};
}

}  // namespace

TEST_CASE("whatever a crash leaves, the copy has what it has acknowledged") {
    const char *wanted = std::getenv("DCS_CRASH_STATES");
    const std::uint64_t enough = wanted ? std::strtoull(wanted, nullptr, 10) / 10 : 40'000;
    std::uint64_t states = 0, copies = 0;
    for (std::uint64_t seed = 1; states < enough; ++seed) {
        Enumerator run(seed, {}, 8);
        run.run(60);
        INFO("seed " << seed << ": " << run.bad);
        REQUIRE(run.bad.empty());
        states += run.states;
        copies += run.copies;
    }
    std::printf("mirror: %llu crash states, %llu new copies, bad 0\n", static_cast<unsigned long long>(states),
                static_cast<unsigned long long>(copies));
    CHECK(copies > 5);
}

TEST_CASE("every planted bug of the copy is caught") {
    for (const char *const plant : {
             "early_current",    // the new copy becomes current before it is durable
             "no_sync_current",  // its name not synced
             "drop_old_first",   // the old copy is removed before the new one is current
             "skip_turn",        // a turn is acknowledged without a commit
             "content_unsynced"  // a content is acknowledged that is not durable
         }) {
        const std::string found = first_bad(plant, 200);
        std::printf("planted %s: %s\n", plant, found.c_str());
        CHECK(!found.empty());
    }
}

}  // namespace dcs::mirror_test
