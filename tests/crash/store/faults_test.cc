// Every call to the disk fails once, or from then on, in every way; then the same inside recovery.
// done: it exists after recovery. nothing: the store is as before, and goes on when the cause is
// gone. unknown: either, but whole. And never a crash, a hang or a wrong answer.
#include <cstdlib>

#include "crash/store/damage.h"
#include "crash/store/enumerator.h"
#include "store/names.h"
#include "support/catch.h"

namespace dcs::test {
namespace {

using namespace store;

constexpr Fault all_faults[] = {Fault::no_space, Fault::limit, Fault::io_error, Fault::io_error_done,
                                Fault::short_write};

struct Tally {
    std::uint64_t runs = 0, hit = 0, done = 0, nothing = 0, unknown = 0, refused_opens = 0;
    std::uint64_t recoveries = 0, bad = 0;
    std::string first_bad;
};

// Without temporaries, and without directories that only they are in.
Files visible(const SimDisk &disk) {
    Files files = trees_of(disk);
    for (auto it = files.begin(); it != files.end();) {
        const bool shown = !is_temporary(it->first) && it->first.back() != '/';
        it = shown ? std::next(it) : files.erase(it);
    }
    return files;
}

// The long run (DCS_CRASH_STATES) leaves nothing out.
bool everything() { return std::getenv("DCS_CRASH_STATES") != nullptr; }

class FaultRun {
public:
    FaultRun(const Workload &workload, const StoreOptions &options, Tally &tally)
        : workload_(workload), options_(options), tally_(tally) {}

    void expect_lost(const std::set<std::string> &trees) { lost_ = trees; }

    // Faults while the store works. Returns false once the n-th call is never reached.
    bool run(std::uint64_t n, Fault fault, bool from_then_on) {
        where_ = workload_.name + ", call " + std::to_string(n) + ", " + name_of(fault) +
                 (from_then_on ? " from then on" : " once");
        ++tally_.runs;
        SimDisk disk(16);
        disk.fail_at(n, fault, from_then_on);
        std::size_t low = 0, high = 0;
        if (!work(disk, low, high)) ++tally_.unknown;
        const bool hit = disk.faults_hit() > 0;
        if (hit) ++tally_.hit;
        after(disk, low, high);
        return hit;
    }

    // Faults inside the recovery of `image`.
    bool run_recovery(const SimDisk &image, std::size_t low, std::size_t high, std::uint64_t n, Fault fault,
                      bool from_then_on) {
        where_ = workload_.name + ", recovery, call " + std::to_string(n) + ", " + name_of(fault) +
                 (from_then_on ? " from then on" : " once");
        ++tally_.runs;
        SimDisk disk = image.killed();
        disk.fail_at(n, fault, from_then_on);
        std::size_t turn = 0;
        {
            auto opened = Store::open(disk, test_forest(), options_, nullptr);
            if (opened) compare(disk, turn = (*opened)->turn(), low, high);
            else ++tally_.refused_opens;
            if (opened) low = turn;
        }
        const bool hit = disk.faults_hit() > 0;
        if (hit) ++tally_.hit;
        after(disk, low, high);
        return hit;
    }

private:
    void wrong(const std::string &what) {
        if (tally_.bad++ == 0) tally_.first_bad = where_ + ": " + what;
    }

    void compare(const SimDisk &disk, std::size_t turn, std::size_t low, std::size_t high) {
        if (turn < low || turn > high)
            return wrong("came to turn " + std::to_string(turn) + " of " + std::to_string(low) + ".." +
                         std::to_string(high));
        Files trees = visible(disk), expected = workload_.states[turn];
        for (const std::string &directory : lost_) expected[marker_of(directory)];
        if (!leave_out(trees, lost_)) wrong("a damaged tree is not set aside");
        (void)leave_out(expected, lost_);
        if (trees != expected) wrong("the trees are not those of turn " + std::to_string(turn));
    }

    // The process from its start to its end. False: it ended itself, in doubt.
    bool work(SimDisk &disk, std::size_t &low, std::size_t &high) {
        auto opened = Store::open(disk, test_forest(), options_, nullptr);
        if (!opened) {
            ++tally_.refused_opens;
            return true;
        }
        Store &store = **opened;
        for (const Workload::Turn &turn : workload_.turns) {
            high = low + 1;
            CommitResult result = store.commit(turn.updates, high % 2 ? Room::ordinary : Room::reserve);
            if (result.answer == Answer::nothing) {
                ++tally_.nothing;
                if (result.status) wrong("nothing, but no reason");
                if (options_.behind_turns == 0) compare(disk, store.turn(), low, low);
                disk.clear_faults();
                result = store.commit(turn.updates);
                if (result.answer != Answer::done)
                    wrong("does not go on when the cause is gone: " + result.status.text);
            }
            if (result.answer == Answer::unknown) {
                if (store.commit(turn.updates).answer != Answer::unknown) wrong("answers again after `unknown`");
                return false;
            }
            ++tally_.done;
            low = high;
            if (options_.behind_turns == 0) compare(disk, store.turn(), low, high);
            if (turn.flush_after && store.flush().answer == Answer::unknown) return false;
        }
        return true;
    }

    // A new process on what is left, and a power failure after that, and one instead of it.
    void after(SimDisk &disk, std::size_t low, std::size_t high) {
        disk.clear_faults();
        SimDisk killed = disk.killed();
        const std::size_t turn = recover(killed, low, high);
        SimDisk later = killed.crashed();
        recover(later, turn, turn);
        for (const CrashModel model : {CrashModel::weak, CrashModel::journal})
            disk.each_crash(
                model, 2, tally_.runs, [](std::uint64_t) { return true; },
                [&](SimDisk &state) { recover(state, low, high); });
    }

    std::size_t recover(SimDisk &disk, std::size_t low, std::size_t high) {
        ++tally_.recoveries;
        RecoveryReport report;
        auto opened = Store::open(disk, test_forest(), options_, &report);
        if (!opened) {
            wrong("recovery: " + opened.status().text);
            return low;
        }
        if (report.damaged.size() != lost_.size()) wrong("the report says something else than expected");
        if (lost_.empty() && !report.damaged.empty()) wrong(report.damaged[0].path + ": " + report.damaged[0].what);
        compare(disk, (*opened)->turn(), low, high);
        if (trees_of(disk).size() != visible(disk).size()) wrong("recovery left temporaries");
        return (*opened)->turn();
    }

    const Workload &workload_;
    const StoreOptions options_;
    Tally &tally_;
    std::set<std::string> lost_;
    std::string where_;
};

void all_calls(const Workload &workload, const StoreOptions &options, Tally &tally) {
    for (const Fault fault : all_faults)
        for (const bool from_then_on : {false, true})
            for (std::uint64_t n = 1; FaultRun(workload, options, tally).run(n, fault, from_then_on);) ++n;
}

void print(const char *what, const Tally &t) {
    const auto n = [](std::uint64_t v) { return static_cast<unsigned long long>(v); };
    std::printf(
        "%s: %llu runs, %llu with a fault; commits: %llu done, %llu nothing, %llu runs ended "
        "in doubt; %llu opens refused; %llu recoveries compared, %llu bad\n",
        what, n(t.runs), n(t.hit), n(t.done), n(t.nothing), n(t.unknown), n(t.refused_opens), n(t.recoveries),
        n(t.bad));
}

}  // namespace

TEST_CASE("every call to the disk may fail") {
    Tally tally;
    const Workload written = written_workload();
    for (const unsigned variant : everything() ? std::vector<unsigned>{0, 1, 2, 3, 5} : std::vector<unsigned>{1})
        all_calls(written, small_options(variant), tally);
    all_calls(drawn_workload(77, 6), small_options(0), tally);
    print("faults", tally);
    INFO(tally.first_bad);
    CHECK(tally.bad == 0);
    CHECK(tally.nothing > 1000);
    CHECK(tally.unknown > 1000);
}

TEST_CASE("every call of a recovery may fail") {
    Tally tally;
    const std::size_t step = everything() ? 1 : 4;
    for (const unsigned variant : {3u, 0u}) {
        const Workload workload = variant == 0 ? drawn_workload(5, 5) : written_workload();
        const StoreOptions options = small_options(variant);
        SimDisk disk(16);
        auto opened = Store::open(disk, test_forest(), options, nullptr);
        REQUIRE(opened);
        for (std::size_t done = 1; done <= workload.turns.size(); ++done) {
            REQUIRE((*opened)->commit(workload.turns[done - 1].updates).answer == Answer::done);
            if (done % step != 0) continue;
            for (const SimDisk &image : {disk.killed(), disk.crashed()})
                for (const Fault fault : all_faults)
                    for (const bool from_then_on : {false, true}) {
                        FaultRun run(workload, options, tally);
                        for (std::uint64_t n = 1; run.run_recovery(image, done, done, n, fault, from_then_on);) ++n;
                    }
        }
    }
    print("faults in recovery", tally);
    INFO(tally.first_bad);
    CHECK(tally.bad == 0);
    CHECK(tally.refused_opens > 1000);
}

TEST_CASE("every call of a recovery of a damaged disk may fail") {
    Tally tally;
    const Workload workload = written_workload();
    for (const unsigned variant : {3u, 0u}) {
        StoreOptions options = small_options(variant);
        options.flush_turns = 1000;
        options.journal_bytes = 0;
        options.layout.twice_limit = 0;
        SimDisk disk(16);
        auto opened = Store::open(disk, test_forest(), options, nullptr);
        REQUIRE(opened);
        for (std::size_t turn = 1; turn <= 3; ++turn)
            REQUIRE((*opened)->commit(workload.turns[turn - 1].updates).answer == Answer::done);
        SimDisk damaged = disk.killed();
        const std::string &bytes = workload.states[2].at("sessions/ann/1/grains");
        const std::size_t at = disk.files().at(root_name(2)).find(bytes.substr(10));
        REQUIRE(at != std::string::npos);
        damaged.flip(root_name(2), at, 1);
        const auto lost = trees_lost(disk, damaged);
        CHECK(lost == std::set<std::string>{"sessions/ann/1"});
        for (const SimDisk &image : {damaged.killed(), damaged.crashed()})
            for (const Fault fault : all_faults)
                for (const bool from_then_on : {false, true}) {
                    FaultRun run(workload, options, tally);
                    run.expect_lost(lost);
                    for (std::uint64_t n = 1; run.run_recovery(image, 3, 3, n, fault, from_then_on);) ++n;
                }
    }
    print("faults in recovery of a damaged disk", tally);
    INFO(tally.first_bad);
    CHECK(tally.bad == 0);
    CHECK(tally.refused_opens > 500);
}

TEST_CASE("the planted bug ignore_failed_sync is caught") {
    Tally tally;
    StoreOptions options = small_options(0);
    options.plant = "ignore_failed_sync";
    all_calls(written_workload(), options, tally);
    std::printf("planted ignore_failed_sync: %llu bad, first %s\n", static_cast<unsigned long long>(tally.bad),
                tally.first_bad.c_str());
    CHECK(tally.bad > 0);
}

}  // namespace dcs::test
