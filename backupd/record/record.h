#pragma once
// The backup's State as update trees (libdcs/store), and back.
//   identity/           its file `store`: the name of this store
//   hosts/<name>/       of one host, its name encoded: `log`, its reports in order, appended; `state`, the root
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

// The record of a report. Its number is not in it: numbers have no holes, and the root knows the last one.
std::shared_ptr<const std::string> pack(const wire::GrainReport &report);
// Reads and verifies what a log has of `held`. io_error: it is damaged.
Result<wire::GrainReport> read_report(store::Store &store, const std::string &host, const Held &held);

// What a turn changes, as updates.
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
    State state;                        // store is 0: it needs a name
    std::vector<std::string> reports;   // what is wrong, for the log
    std::vector<store::TreeUpdate> first;  // to be committed before anything else
};
// All that is on disk. What a damaged host's tree held is lost: its grains run again from what the scheduler has. If
// even its numbers are, the store needs another name.
Result<Rebuilt> rebuild(store::Store &store);

}  // namespace dcs::backup::record
