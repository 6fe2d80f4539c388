// B6: a zeroed, overwritten or flipped block of 4 KiB anywhere in the state directory: the store
// opens, names what is damaged, and everything else is right.
#include <cstdlib>

#include "crash/store/damage.h"
#include "crash/store/enumerator.h"
#include "store/names.h"
#include "support/catch.h"

namespace dcs::test {
namespace {

using namespace store;

constexpr std::size_t block = 4096;

StoreOptions real_sizes() {
    StoreOptions options;
    options.journal_bytes = 0;
    options.flush_turns = 1000;
    options.append_inline_limit = options.inline_limit;
    options.reserve_bytes = 3 * block;
    return options;
}

// Turns with roots of all sizes, and the model of what they do.
class Ward {
public:
    explicit Ward(std::string_view plant) : disk_(512), random_(7) {
        patient_.options = real_sizes();
        patient_.options.plant = plant;
        open();
    }
    std::string text(std::size_t length) {
        std::string bytes(length, ' ');
        for (char &c : bytes) c = static_cast<char>('a' + random_.below(26));
        return bytes;
    }
    void update(const std::string &directory, const char *tree, std::vector<NodeUpdate> nodes) {
        for (NodeUpdate &node : nodes)
            if (node.old_length > 0) node.old_length = model_[directory + "/" + node.file].size();
        add({directory, tree, std::move(nodes), false});
    }
    void add(TreeUpdate update) {
        apply_to_model(model_, update);
        updates_.push_back(std::move(update));
    }
    void commit() {
        REQUIRE(store_->commit(updates_).answer == Answer::done);
        updates_.clear();
    }
    void reopen() {
        store_.reset();
        open();
    }
    SimDisk &disk() { return disk_; }
    Patient patient() {
        patient_.disk = disk_.killed();
        patient_.trees = model_;
        patient_.turn = store_->turn();
        return patient_;
    }
    void set_aside(const std::string &directory) { patient_.set_aside.insert(directory); }

private:
    void open() {
        auto opened = Store::open(disk_, test_forest(), patient_.options, nullptr);
        REQUIRE(opened);
        store_ = std::move(*opened);
    }

    SimDisk disk_;
    Random random_;
    Patient patient_{SimDisk(512), {}, {}, 0, {}};
    std::unique_ptr<Store> store_;
    std::vector<TreeUpdate> updates_;
    Files model_;
};

const std::string ann = "sessions/ann/1", bob = "sessions/bob/1", cyd = "sessions/cyd/1", dan = "sessions/dan/1";

Patient populated(std::string_view plant) {
    Ward w(plant);
    // A tree that is set aside already, and durable ones.
    w.update(cyd, "session", {{"grains", w.text(20'000), 0}, {"status", w.text(60), 0}});
    w.commit();
    w.disk().flip(root_name(1), 9000, 1);
    w.reopen();
    w.set_aside(cyd);
    for (const std::string &s : {ann, bob, dan})
        w.update(s, "session", {{"grains", w.text(5'000), 0}, {"status", w.text(60), 0}});
    w.update("auth", "auth", {{"table", w.text(9'000), 0}});
    w.commit();
    w.reopen();
    // A small root; one whose bytes are there once; one with a long head; one with both.
    w.update(ann, "session", {{"grains", w.text(150), 1}, {"status", w.text(60), 0}});
    w.update("auth", "auth", {{"table", w.text(300), 0}});
    w.commit();
    for (const std::string &s : {ann, bob, dan})
        w.update(s, "session", {{"results", w.text(9'000), 0}, {"status", w.text(60), 0}});
    w.commit();
    for (int g = 0; g < 120; ++g) w.update(ann + "/g/" + std::to_string(g), "grain", {{"status", w.text(30), 0}});
    w.commit();
    for (int g = 100; g < 180; ++g)
        w.update(ann + "/g/" + std::to_string(g), "grain", {{"checkpoint", w.text(700), 0}, {"status", w.text(30), 0}});
    w.commit();
    // Big ones: replaced, appended, in a new tree; then on top of them.
    w.update(ann + "/g/3", "grain", {{"params", w.text(70'000), 0}, {"out", w.text(50'000), 0}, {"status", "a", 0}});
    w.update(ann + "/g/200", "grain", {{"checkpoint", w.text(40'000), 0}, {"status", "b", 0}});
    w.commit();
    w.update(ann + "/g/3", "grain", {{"out", w.text(10), 1}, {"status", "c", 0}});
    w.update(ann, "session", {{"grains", w.text(12'000), 1}, {"status", w.text(60), 0}});
    w.commit();
    // A tree of which bytes wait is removed (that flushes), made again, and removed permanently.
    w.add({bob, "session", {}, true});
    w.update(bob, "session", {{"grains", w.text(15'000), 0}, {"status", "d", 0}});
    w.commit();
    w.update(ann, "session", {{"inputs", w.text(30'000), 0}, {"grains", w.text(100), 1}, {"status", "e", 0}});
    w.update(dan, "session", {{"results", w.text(8'100), 1}, {"status", "f", 0}});
    w.update(ann + "/g/7", "grain", {{"params", w.text(33'000), 0}, {"err", w.text(34'000), 0}, {"status", "g", 0}});
    w.commit();
    for (int g = 0; g < 60; ++g) w.update(dan + "/g/" + std::to_string(g), "grain", {{"status", w.text(90), 0}});
    w.commit();
    w.update(ann, "session", {{"grains", w.text(100), 1}, {"status", "h", 0}});
    w.commit();
    return w.patient();
}

Verdict every_block(std::string_view plant) {
    Patient patient = populated(plant == "heads_in_one_block" ? plant : "");
    patient.options.plant = plant;
    Verdict verdict;
    Random random(11);
    for (const auto &[path, bytes] : patient.disk.files()) {
        // Of the trees' own files nothing depends on how they are damaged.
        const bool own = path.compare(0, 6, "turns/") == 0 || !valid_tree_directory(path) || is_temporary(path);
        if (!plant.empty() && !own) continue;
        for (std::size_t at = 0; at < bytes.size(); at += block) {
            if (!plant.empty() && verdict.wrong > 0) return verdict;
            examine(
                patient, path, at, block, [](char) { return '\0'; }, verdict);
            if (own)
                examine(
                    patient, path, at, block, [](char) { return '\xff'; }, verdict);
            if (own)
                examine(
                    patient, path, at, block, [](char c) { return static_cast<char>(~c); }, verdict);
            const std::size_t length = std::min(block, bytes.size() - at);
            for (int n = 0; n < (own ? 4 : 1); ++n) {
                const char bit = static_cast<char>(1 << random.below(8));
                examine(
                    patient, path, at + random.below(length), 1, [=](char c) { return static_cast<char>(c ^ bit); },
                    verdict);
            }
        }
    }
    // Every byte of the small texts, in both copies.
    for (const char *path : {applied_file, format_file}) {
        const std::size_t size = patient.disk.files().at(path).size();
        for (std::size_t at = 0; at < size; ++at)
            if (at % block < 42)
                examine(
                    patient, path, at, 1, [](char c) { return static_cast<char>(c ^ 1); }, verdict);
    }
    return verdict;
}

void print(const char *what, const Verdict &v) {
    const auto n = [](std::uint64_t x) { return static_cast<unsigned long long>(x); };
    std::printf("%s: %llu tried, %llu harmless, %llu repaired, %llu cost a tree, %llu refused, %llu wrong%s%s\n", what,
                n(v.tried), n(v.harmless), n(v.repaired), n(v.set_aside), n(v.refused), n(v.wrong), v.wrong ? ": " : "",
                v.first_wrong.c_str());
}

}  // namespace

TEST_CASE("any block of the state directory may be damaged") {
    const Verdict verdict = every_block({});
    print("damaged blocks", verdict);
    INFO(verdict.first_wrong);
    CHECK(verdict.wrong == 0);
    CHECK(verdict.harmless > 100);
    CHECK(verdict.repaired > 30);
    CHECK(verdict.set_aside > 200);
}

TEST_CASE("planted bugs of the damage checks are caught") {
    for (const char *const plant : {"skip_root_checksum", "skip_stamp_checksum", "heads_in_one_block"}) {
        const Verdict verdict = every_block(plant);
        print(plant, verdict);
        CHECK(verdict.wrong > 0);
    }
}

TEST_CASE("any bit of small roots, stamps and temporaries may be flipped") {
    for (const unsigned variant : {3u, 0u}) {
        StoreOptions options = small_options(variant);
        options.flush_turns = 1000;
        const Workload workload = written_workload();
        for (const std::size_t turns : {3u, 7u}) {
            SimDisk disk(16);
            auto opened = Store::open(disk, test_forest(), options, nullptr);
            REQUIRE(opened);
            for (std::size_t i = 0; i < turns; ++i)
                REQUIRE((*opened)->commit(workload.turns[i].updates).answer == Answer::done);
            const Patient patient{disk.killed(), options, workload.states[turns], turns, {}};
            Verdict verdict;
            for (const auto &[path, bytes] : patient.disk.files())
                for (std::size_t at = 0; at < bytes.size(); ++at)
                    examine(
                        patient, path, at, 1, [at](char c) { return static_cast<char>(c ^ (1 << at % 8)); }, verdict);
            print("flipped bits", verdict);
            INFO(verdict.first_wrong);
            CHECK(verdict.wrong == 0);
            CHECK(verdict.tried > 1000);
        }
    }
}

}  // namespace dcs::test
