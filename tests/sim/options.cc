#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "sim/plan.h"

namespace dcs::sim {
namespace {

[[noreturn]] void usage(const std::string &why) {
    if (!why.empty()) std::fprintf(stderr, "dcs_sim: %s\n", why.c_str());
    std::fprintf(why.empty() ? stdout : stderr,
                 "usage: dcs_sim [--seed S] [--seeds N] [--hosts N] [--days D] [--interval SECONDS] [--slots K]\n"
                 "               [--grains N] [--contents] [--backup] [--forget] [--brief] [--queues] [--resources]\n"
                 "               [--faults all|none|LIST] [--plant NAME] [--jobs J] [--seconds S]\n"
                 "               [--trace] [--hash] [--quiet] [--scale-table]\n"
                 "Runs whole pools in virtual time: the real scheduler, store, grain servers' decisions and\n"
                 "conversations, with simulated disks, connections, hosts and programs. The same seed, the same\n"
                 "history. What is wrong is printed with the events before it and the command that repeats it.\n");
    std::exit(why.empty() ? 0 : 2);
}

double number(const char *option, const char *text) {
    char *end = nullptr;
    const double value = text ? std::strtod(text, &end) : 0;
    if (!text || end == text || *end != '\0' || !(value >= 0)) usage(std::string(option) + " needs a number");
    return value;
}

template <class T> bool take(const char *option, const char *wanted, int &i, char **argv, T &into) {
    if (std::strcmp(option, wanted) != 0) return false;
    into = static_cast<T>(number(option, argv[++i]));
    return true;
}

bool take_text(const char *option, const char *wanted, int &i, char **argv, std::string &into) {
    if (std::strcmp(option, wanted) != 0) return false;
    if (!argv[++i]) usage(std::string(option) + " needs a word");
    into = argv[i];
    return true;
}

bool take_flag(const char *option, const char *wanted, bool &into) {
    if (std::strcmp(option, wanted) != 0) return false;
    return into = true;
}

}  // namespace

Options read_options(int argc, char **argv) {
    Options o;
    o.command = argc > 0 ? argv[0] : "dcs_sim";
    for (int i = 1; i < argc; ++i) {
        const char *word = argv[i];
        const int first = i;
        if (std::strcmp(word, "--help") == 0) usage("");
        const bool of_this_run = take(word, "--seed", i, argv, o.seed) || take(word, "--seeds", i, argv, o.seeds) ||
                                 take(word, "--jobs", i, argv, o.jobs) || take(word, "--seconds", i, argv, o.seconds) ||
                                 take_flag(word, "--trace", o.trace) || take_flag(word, "--quiet", o.quiet) ||
                                 take_flag(word, "--hash", o.hash) || take_flag(word, "--scale-table", o.scale_table);
        if (of_this_run) continue;
        const bool of_all = take(word, "--hosts", i, argv, o.hosts) || take(word, "--slots", i, argv, o.slots) ||
                            take(word, "--days", i, argv, o.days) || take(word, "--interval", i, argv, o.interval_s) ||
                            take(word, "--grains", i, argv, o.grains) ||
                            take_text(word, "--faults", i, argv, o.faults) ||
                            take_text(word, "--plant", i, argv, o.plant);
        if (!of_all && !take_flag(word, "--contents", o.contents) && !take_flag(word, "--backup", o.backup) &&
            !take_flag(word, "--forget", o.forget) && !take_flag(word, "--brief", o.brief) &&
            !take_flag(word, "--queues", o.queues) && !take_flag(word, "--resources", o.resources))
            usage(std::string("unknown word `") + word + "`");
        for (int k = first; k <= i; ++k) o.command += std::string(" ") + argv[k];
    }
    if (o.hosts < 1 || o.hosts > 100'000) usage("--hosts is between 1 and 100000");
    if (o.days <= 0 || o.days > 3650) usage("--days is above 0 and not more than ten years");
    if (o.jobs < 1 || o.jobs > 64) usage("--jobs is between 1 and 64");
    if (o.slots > 1024) usage("--slots is at most 1024");
    return o;
}

}  // namespace dcs::sim
