#pragma once
// A list of inputs that has grown at its end: what maps of its first inputs have finished, or still run, does not run
// again.
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "commands/dcs/query/scheduler.h"
#include "files.h"
#include "plan.h"

namespace dcs::commands {

// Of an input that succeeded in another session, or has not ended there.
struct EarlierResult {
    std::int32_t grain = 0;
    int session = 0;
    std::uint64_t out_length = 0, err_length = 0;
    double cpu_s = 0;
    bool runs = false;  // or waits to: the rest is not known yet
};

struct WholeMap {
    const MapPlan &plan;
    std::function<std::vector<MapFile>(std::size_t)> files;  // that a map of the first so many inputs names
    // Was a grain submitted with this environment (null: that of now) and the outputs of now?
    std::function<bool(const wire::GrainRow &, const std::vector<std::string> *environment)> alike;
    const FileWords &words;  // files that it brings, and outputs
};

struct EarlierResults {
    std::vector<EarlierResult> results;  // in ascending order of the inputs, each from the latest session that has it
    std::string refused;  // for people, why what the latest session of others has does not count; empty: it does
};
// Those that `ours` has are left out, and its environment counts; null: none are, and that of now does.
EarlierResults earlier_results(const std::vector<Session> &own, const WholeMap &map, const Session *ours);

// An input whose file, or one that is brought for it, was written after its grain had succeeded in this session; empty:
// none, as far as is known. A grain may write to its own input, or remove it.
std::string changed_after_its_grain(const Session &session, const MapPlan &plan, const FileWords &words);
// A file without which results of the session's grains that succeeded are not those of now; empty: none. `recorded`:
// what its files were.
std::string changed_under(const Session &session, const std::string &recorded, const std::vector<MapFile> &files,
                          const MapPlan &plan, const FileWords &words);

}  // namespace dcs::commands
