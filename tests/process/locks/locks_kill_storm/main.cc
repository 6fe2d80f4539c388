// A storm of SIGKILL over processes that take locks in every way there is. No two holders, no stall, no stranger
// signalled, nothing left of an expired command's tree, and each bug that is planted is found.
//   locks_kill_storm [--seed N] [--acquisitions N] [--family NAME] [--plant BUG] [--command DCS_LOCK]
//                    [--mutant DCS_LOCK_PLANTED]
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include <unistd.h>

#include "base/planted.h"
#include "storm.h"

namespace {

std::string plant;

}  // namespace

namespace dcs {
// In place of the library's, which knows no bugs.
bool planted(const char *name) noexcept { return plant == name; }
}  // namespace dcs

namespace {

struct Options {
    std::uint64_t seed = 1;
    int acquisitions = 10'000;
    std::string family, command, mutant;
};

// Which family sees which bug.
const std::pair<const char *, const char *> bugs[] = {
    {"locks.hold_anyway", "hold"},           {"locks.hold_anyway", "shared"},
    {"locks.hold_anyway", "adaptive"},       {"locks.queue_no_range", "fifo"},
    {"locks.identity_is_a_pid", "adaptive"}, {"locks.generation", "adaptive"},
    {"locks.slots_hints_only", "slots"},     {"locks.slots_hints_only", "limits"},
    {"locks.slots_no_bell", "slots"},        {"locks.no_copy_for_command", "commands"},
    {"locks.leader_only", "commands"},
};

std::string folder(const std::string &base, int number) {
    const std::string path = base + "/" + std::to_string(number);
    std::filesystem::create_directories(path);
    return path;
}

void print(const char *name, const storm::Round &round, const storm::Outcome &o) {
    std::printf(
        "%-9s %2d processes: %6d acquisitions, %5d kills, %4d takeovers, %4d after a crash, %4d expired, %3d "
        "witnesses%s%s\n",
        name, round.workers, o.acquisitions, o.kills, o.takeovers, o.crashes, o.expired, o.witnesses,
        o.good() ? "" : "; WRONG: ", o.text.c_str());
    if (!o.good())
        std::printf("          two holders %d, tokens %d, strangers signalled %d, failures %d, survivors %d%s\n",
                    o.doubles, o.bad_tokens, o.innocents, o.failures, o.survivors, o.stalled ? ", STALLED" : "");
    std::fflush(stdout);
}

// True: all good.
bool rounds(const Options &options, const std::string &base, int &number) {
    bool good = true;
    int kills = 0;
    std::vector<const storm::FamilyKind *> kinds;
    for (const storm::FamilyKind &kind : storm::families())
        if (options.family.empty() || options.family == kind.name) kinds.push_back(&kind);
    const bool commands = !options.command.empty() && (options.family.empty() || options.family == "commands");
    const int shares = static_cast<int>(kinds.size()) + (commands ? 1 : 0);
    storm::Random random(options.seed);
    for (const int workers : {2, 3 + storm::pick(random, 13), 64}) {
        for (const storm::FamilyKind *kind : kinds) {
            storm::Round round{kind,    folder(base, number++), "", "", workers, options.acquisitions / shares / 3,
                               random()};
            if (!plant.empty()) round.patience = 5;
            const storm::Outcome outcome = storm::run_workers(round);
            print(kind->name, round, outcome);
            good = good && outcome.good();
            kills += outcome.kills;
            if (!plant.empty() && !outcome.good()) return false;  // found
        }
        if (!commands) continue;
        storm::Round round{
            nullptr, folder(base, number++), options.command, plant, workers, options.acquisitions / shares / 3,
            random()};
        const storm::Outcome outcome = storm::run_commands(round);
        print("commands", round, outcome);
        good = good && outcome.good();
        kills += outcome.kills;
        if (!plant.empty() && !outcome.good()) return false;
    }
    std::printf("%d kills\n", kills);
    return good && kills > options.acquisitions / 50;  // else it was no storm
}

// True: every planted bug was found, by its own family.
bool bugs_are_found(const Options &options, const std::string &base, int &number) {
    bool all = true;
    for (const auto &[bug, family] : bugs) {
        const bool command = std::strcmp(family, "commands") == 0;
        if ((!options.family.empty() && options.family != family) || (command && options.mutant.empty())) continue;
        if (std::strcmp(bug, "locks.identity_is_a_pid") == 0 && !storm::Witnesses::may_choose_pids()) {
            std::printf("not tried, because pids cannot be chosen here: planted %s\n", bug);
            continue;
        }
        plant = bug;
        bool found = false;
        for (int round = 0; round < 5 && !found; ++round) {
            const Options one{options.seed + static_cast<std::uint64_t>(round), command ? 1500 : 6000, family,
                              command ? options.mutant : "", ""};
            found = !rounds(one, base, number);
        }
        plant.clear();
        std::printf("%s planted %s\n", found ? "found:" : "NOT FOUND:", bug);
        all = all && found;
    }
    return all;
}

bool parse(int argc, char **argv, Options &options) {
    for (int i = 1; i < argc; i += 2) {
        const std::string name = argv[i];
        if (i + 1 == argc) return false;
        const char *value = argv[i + 1];
        if (name == "--seed") options.seed = std::strtoull(value, nullptr, 10);
        else if (name == "--acquisitions") options.acquisitions = std::atoi(value);
        else if (name == "--family") options.family = value;
        else if (name == "--plant") plant = value;
        else if (name == "--command") options.command = value;
        else if (name == "--mutant") options.mutant = value;
        else return false;
    }
    return options.acquisitions > 0;
}

}  // namespace

int main(int argc, char **argv) {
    if (argc == 6 && std::strcmp(argv[1], "--inside") == 0)
        return storm::inside_command(argv[2], std::atoi(argv[3]), std::atoi(argv[4]),
                                     std::strcmp(argv[5], "hang") == 0);
    Options options;
    if (const char *seed = std::getenv("DCS_SEED")) options.seed = std::strtoull(seed, nullptr, 10);
    if (std::getenv("DCS_TESTS_FULL") != nullptr) options.acquisitions = 100'000;
    if (!parse(argc, argv, options)) {
        std::fprintf(stderr,
                     "usage: locks_kill_storm [--seed N] [--acquisitions N] [--family NAME] [--plant BUG] "
                     "[--command DCS_LOCK] [--mutant DCS_LOCK_PLANTED]\n");
        return 2;
    }
    std::printf("seed %llu (--seed repeats it)\n", static_cast<unsigned long long>(options.seed));
    std::string base = "/tmp/dcs-storm-XXXXXX";
    if (::mkdtemp(base.data()) == nullptr) return 2;
    int number = 0;
    const bool mutated = !plant.empty();
    bool good = rounds(options, base, number);
    if (!mutated) good = bugs_are_found(options, base, number) && good;
    if (good || mutated) std::filesystem::remove_all(base);
    std::printf("%s\n", good ? "1 passed, 0 failed" : "0 passed, 1 failed");
    return good ? 0 : 1;
}
