#include "crash/store/damage.h"

#include "store/journal.h"

#include <algorithm>

#include "store/names.h"
#include "store/stamp.h"
#include "store/turn_root.h"

namespace dcs::test {

using namespace store;

namespace {

constexpr std::size_t twice_flag = 8 + 4 + 4 + 8 + 8;  // its place in a root

bool is_tree_file(const std::string &path) {
    return path.compare(0, 6, "turns/") != 0 && valid_tree_directory(path) && !is_temporary(path);
}

// Why the disk is not what it must be after recovery; empty: it is.
std::string difference(const Patient &patient, const SimDisk &disk, const std::string &path,
                       const std::set<std::string> &lost) {
    std::set<std::string> set_aside = patient.set_aside;
    set_aside.insert(lost.begin(), lost.end());
    Files trees = trees_of(disk), expected = patient.trees;
    for (const std::string &directory : set_aside) expected[marker_of(directory)];
    if (!leave_out(trees, set_aside)) return "a damaged tree is not set aside";
    (void)leave_out(expected, set_aside);
    if (is_tree_file(path)) {  // its owner's business
        trees.erase(path);
        expected.erase(path);
    }
    if (trees != expected) return "an undamaged tree is wrong, or set aside";
    if (decode_format(disk.files().at(format_file)) != Format::good) return "the format file is not repaired";
    const auto stamp = decode_stamp(disk.files().at(applied_file), true);
    if (!stamp || !stamp->damage.empty()) return "the stamp is not repaired";
    if (stamp->turn != patient.turn) return "the stamp is not that of the last turn";
    return {};
}

}  // namespace

// Of turns in the journal no single block costs anything, only what lies beside them. Small stores have these blocks.
constexpr std::size_t journal_block = 64;

std::size_t journal_end(const SimDisk &disk) {
    const Files files = disk.files();
    const auto journal = files.find(journal_file);
    return journal == files.end() ? 0 : read_journal(journal->second, 0, journal_block, true).used;
}

std::set<std::string> trees_lost(const SimDisk &good, const SimDisk &damaged) {
    const Files before = good.files(), after = damaged.files();
    std::set<std::string> lost;
    const auto stamp = before.find(applied_file);
    const auto applied = stamp == before.end() ? Result<Stamp>(Stamp{}) : decode_stamp(stamp->second, true);
    DCS_REQUIRE(applied, "the stamp was damaged before");
    std::map<std::uint64_t, std::string> roots;
    for (const auto &[path, root] : before) {
        std::uint64_t turn = 0;
        if (path.compare(0, 6, "turns/") == 0 && parse_root_name(path.substr(6), turn)) roots[turn] = root;
    }
    if (const auto journal = before.find(journal_file); journal != before.end())
        for (const auto &[turn, read] : read_journal(journal->second, applied->turn, journal_block, true).turns)
            roots.emplace(turn, read.root);
    for (const auto &[turn, root] : roots) {
        if (turn <= applied->turn) continue;  // nothing needs it any more
        const auto decoded = decode_turn(root, turn, true);
        DCS_REQUIRE(decoded, "the root was damaged before");
        const auto file = after.find(root_name(turn));
        const std::string &root_after = file == after.end() ? root : file->second;
        for (const Step &step : decoded->steps) {
            if (step.kind == StepKind::remove) {
                for (auto it = lost.begin(); it != lost.end();)
                    it = is_below(*it, step.directory) ? lost.erase(it) : std::next(it);
            } else if (step.kind == StepKind::inside) {
                const auto at = static_cast<std::size_t>(step.bytes.data() - root.data());
                const bool twice = root[twice_flag] != 0;
                if (!twice && root_after.compare(at, step.length, step.bytes) != 0) lost.emplace(step.directory);
            } else if (step.kind == StepKind::beside) {
                const std::string name = big_temporary(step.directory, step.file, turn);
                if (after.at(name) != before.at(name)) lost.emplace(step.directory);
            }
        }
    }
    return lost;
}

void examine(const Patient &patient, const std::string &path, std::size_t offset, std::size_t length,
             const std::function<char(char)> &change, Verdict &verdict) {
    SimDisk disk = patient.disk.killed();
    disk.damage(path, offset, length, change);
    if (disk.files() == patient.disk.files()) return;
    ++verdict.tried;
    const auto wrong = [&](const std::string &what) {
        if (verdict.wrong++ == 0)
            verdict.first_wrong =
                path + ", " + std::to_string(length) + " bytes at " + std::to_string(offset) + ": " + what;
    };
    const std::set<std::string> lost = trees_lost(patient.disk, disk);
    RecoveryReport report;
    {
        auto opened = Store::open(disk, test_forest(), patient.options, &report);
        if (!opened) {
            ++verdict.refused;
            return wrong(opened.status().text);
        }
        if ((*opened)->turn() != patient.turn) return wrong("it came to another turn");
    }
    if (const std::string what = difference(patient, disk, path, lost); !what.empty()) return wrong(what);
    std::set<std::string> named;
    for (const Damage &damage : report.damaged) {
        named.insert(damage.path);
        if (damage.path != path && !lost.count(damage.path) && !patient.set_aside.count(damage.path))
            wrong("it names " + damage.path + ", which is not damaged");
    }
    for (const std::string &directory : lost)
        if (!named.count(directory)) wrong(directory + " is not named");
    ++(!lost.empty() ? verdict.set_aside : named.count(path) ? verdict.repaired : verdict.harmless);
    SimDisk later = disk.crashed();
    if (!Store::open(later, test_forest(), patient.options, nullptr)) return wrong("it opens only once");
    if (const std::string what = difference(patient, later, path, lost); !what.empty()) wrong("later " + what);
}

}  // namespace dcs::test
