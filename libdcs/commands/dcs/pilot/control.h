#pragma once
// What `dcs pilot slurm` and its like do, and how all pilots of a pool are seen.
#include <set>
#include <string>
#include <vector>

#include "decide.h"
#include "place.h"

namespace dcs::commands {

struct PilotOrder {
    double limit_s = 0, idle_s = 0, margin_s = 0, every_s = 10;
    PilotLimits limits;
    std::vector<std::string> options;  // for the engine
    std::string run_as;                // accounts of grains, as `dcs pilot serve` has them
};

// Why pilots must not be jobs of this account: grains of every user would run under it.
std::optional<Failure> open_to_all(const std::vector<wire::HostRow> &pilots, bool own_pool, bool root);

// What an engine's command said.
Failure engine_failure(const std::string &what, const Status &said);

// The hosts with their jobs; jobs of hosts that the table no longer has come last, with a row of their name only.
// `engine`: nullptr if no job was submitted yet.
struct SeenPilots {
    std::vector<Pilot> pilots;
    std::int64_t ready = 0;
    std::optional<Failure> failure;
};
SeenPilots see_pilots(Engine *engine, const PilotPlace &place);

class PilotControl {
public:
    PilotControl(Engine &engine, const PilotPlace &place, PilotOrder order)
        : engine_(engine), place_(place), order_(std::move(order)) {}
    // One look at pool and engine, and what follows from it; nothing more after a signal that ends this command.
    std::optional<Failure> step();
    bool has_submitted() const { return submitted_; }
    void tell(const std::string &text) const;

private:
    Status submit(const Pilot &pilot);
    void tell_once(const std::string &text);

    Engine &engine_;
    const PilotPlace &place_;
    const PilotOrder order_;
    Fruitless fruitless_;
    std::set<std::string> cancelled_;  // hosts whose job this process has cancelled
    std::string told_;
    bool submitted_ = false;
};

// The verb of an engine, and the options of each.
int pilot_work(const Call &call, const EngineKind &kind);
OptionTable pilot_options();

}  // namespace dcs::commands
