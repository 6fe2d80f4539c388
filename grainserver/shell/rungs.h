#pragma once
// What the owner of the host said about confinement, against what the host can do.
#include <string>
#include <vector>

#include "base/confinement.h"
#include "base/status.h"
#include "grainserver/files/confine.h"

namespace dcs::server {

struct RungOptions {
    std::string level = "auto";         // or limits, filter, scope, files, namespaces: each with all before it
    bool network = true;
    std::vector<std::string> writable;  // absolute; for rung_files
};
Status check(const RungOptions &options);
// The rungs that each grain gets. Code::invalid: what was said cannot be had here, and why.
Result<Rungs> rungs_for(const RungOptions &options, const files::Available &host);

}  // namespace dcs::server
