#pragma once
// Hosts by name, and what `dcs host drain`, `undrain` and `set` ask for.
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "commands/dcs/frame/arguments.h"
#include "commands/dcs/query/scheduler.h"
#include "dcs.h"

namespace dcs::commands {

struct ChosenHosts {
    std::vector<wire::HostRow> rows;  // each once, in the table's order
    std::vector<wire::MemberRow> members;
    std::optional<Failure> failure;
};
enum class Which : std::uint8_t { grain_hosts, with_members };
// No name: all hosts, as `all`. A name that is none of a host is a failure.
ChosenHosts choose_hosts(const std::vector<std::string> &names, Which which = Which::grain_hosts);

d_host_change no_change();
d_host_change drain_change(bool evict);
// No longer drained; where `settings` of the host's row has slots=0 too, the host table's slots come
// back and what else was set stays. Settings that are not understood stay as they are.
d_host_change undrain_change(std::string_view settings);

inline constexpr int most_slots_of_a_host = 65536;  // what the scheduler takes
inline constexpr double least_time_s = 0.001;

struct HostOrder {
    d_host_change change = no_change();
    bool changes = false, clear_nogo = false;
    std::vector<std::string> hosts, grains;  // grains: only of these, when not empty
};
// From the command line of `dcs host set`.
std::optional<Failure> take_host_order(const Arguments &arguments, HostOrder &order);

}  // namespace dcs::commands
