#pragma once
// Stores the backup's State in update trees (libdcs/store).
//   identity/           with the file `store`: the name of this store
//   hosts/<name>/       for each host, its name encoded: `log`, its reports in order, appended; `state`, the root
// A report's record is: u32 length of its head, u32 CRC-32C of the head, the head, the packed report, whose length and
// checksum are in the head. Numbers are little-endian.
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "backupd/core/decision.h"
#include "base/status.h"
#include "store/store.h"

namespace dcs::backup::record {

const store::Forest &forest();

// The record of a report. It does not contain the number: numbers are contiguous, and the root has the last one.
std::shared_ptr<const std::string> pack(const wire::GrainReport &report);
// Reads and verifies the report of `held` from a log. io_error: it is damaged.
Result<wire::GrainReport> read_report(store::Store &store, const std::string &host, const Held &held);

// Collects the changes of a turn as updates.
class TurnChanges {
public:
    void add(const State &before, const Change &change);
    bool empty() const { return hosts_.empty(); }
    std::uint64_t bytes() const { return bytes_; }
    std::vector<store::TreeUpdate> plan(const State &after);

private:
    struct Log {
        std::uint64_t old_length = 0;
        std::string bytes;
        bool cut = false;
    };
    std::map<std::string, Log> hosts_;
    std::uint64_t bytes_ = 0;
};

store::TreeUpdate name_store(std::uint64_t name);

struct Rebuilt {
    State state;                           // store may be 0: it needs a name
    std::vector<std::string> reports;      // damage, for the log
    std::vector<store::TreeUpdate> first;  // to be committed before anything else
};
// Reads the whole state. The reports in a damaged host's tree are lost: its grains run again from the scheduler's
// state. If its numbers are lost too, the store needs a new name.
Result<Rebuilt> rebuild(store::Store &store);

}  // namespace dcs::backup::record
