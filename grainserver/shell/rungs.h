#pragma once
// Matches the owner's options for confinement with the capabilities of the host.
#include <string>
#include <vector>

#include "base/confinement.h"
#include "base/status.h"
#include "grainserver/files/confine.h"

namespace dcs::server {

struct RungOptions {
    std::string level = "auto";  // or limits, filter, scope, files, namespaces: each includes those before it
    bool network = true;
    std::vector<std::string> writable;  // absolute; for rung_files
};
Status check(const RungOptions &options);
// The rungs of each grain. Code::invalid: the options require a rung that this host does not support; gives the reason.
Result<Rungs> rungs_for(const RungOptions &options, const files::Available &host);

}  // namespace dcs::server
