#pragma once
// The directory of a pool's pilots, on a file system that login hosts and compute hosts share:
//
//   lock            held while `dcs pilot slurm`, or one of another engine, runs
//   engine          which engine that was: `pbs`
//   stop            made by `dcs pilot stop`: `dcs pilot slurm` ends when it sees it
//   pilotN/pki/     key and certificate of that host, mode 0600
//   pilotN/job      what its jobs execute
//   pilotN/log      what they say; log.pbs, log.condor: what the engine says of them
//   pilotN/end      the id of a job that has to end: where the engine cannot signal it alone (PBS)
#include <string>
#include <vector>

#include "base/status.h"
#include "commands/dcs/frame/call.h"
#include "engine.h"
#include "wire/message.h"

namespace dcs::commands {

class PilotPlace {
public:
    explicit PilotPlace(const Call &call);  // of a private pool in its directory, else in the user's state directory
    const std::string &directory() const { return directory_; }
    std::string path(const std::string &name) const { return directory_ + "/" + name; }
    Status make() const;
    const EngineKind *engine() const;  // that its jobs are of; nullptr: there were none yet
    Status set_engine(const EngineKind &kind) const;
    // Names of jobs begin with it: no other pool's jobs do.
    std::string prefix() const;
    std::string job_name(const std::string &host) const { return prefix() + host; }

private:
    std::string directory_;
};

// The pool's hosts for pilots, pilot1 and so on, in the order of their numbers. A Failure says how to get some.
struct PilotHosts {
    std::vector<wire::HostRow> rows;
    std::int64_t ready = 0;  // grains that wait
    std::optional<Failure> failure;
};
PilotHosts pilot_hosts();
bool is_pilot_name(std::string_view name);
// Whether the job of this environment is asked to end by a file beside `pki`.
bool job_is_asked_to_end(const std::string &pki);

// Key and certificate of that host, by a one-time code, unless they are there. The scheduler's addresses, as it joined.
Result<std::string> join_pilot(const PilotPlace &place, const std::string &host);

}  // namespace dcs::commands
