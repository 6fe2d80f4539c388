#pragma once
// Hosts by name, and what `dcs host drain`, `undrain` and `set` ask for.
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "arguments.h"
#include "ask.h"

namespace dcs::commands {

struct ChosenHosts {
    std::vector<const d_host_row *> rows;  // each once, in the table's order; `info` owns them
    std::optional<Failure> failure;
};
// No name: all hosts, as `all`. A name that is none of a host is a failure.
ChosenHosts choose_hosts(const std::vector<std::string> &names, Info &info);

d_host_change no_change();
d_host_change drain_change(bool evict);
// No longer drained; where `settings` of the host's row has slots=0 too, the host table's slots come
// back and what else was set stays. Settings that are not understood stay as they are.
d_host_change undrain_change(std::string_view settings);

struct HostOrder {
    d_host_change change = no_change();
    bool changes = false, clear_nogo = false;
    std::vector<std::string> hosts, grains;  // grains: only of these, when not empty
};
// From the command line of `dcs host set`.
std::optional<Failure> take_host_order(const Arguments &arguments, HostOrder &order);

}  // namespace dcs::commands
