#pragma once
// Stores the backup's State in update trees (libdcs/store).
//   identity/           with the file `store`: the name of this store
//   hosts/<name>/       for each host, its name encoded: `log`, its reports in order, appended; `state`, the root
// A report's record is: u32 length of its head, u32 CRC-32C of the head, the head, the packed report, whose length and
// checksum are in the head. Numbers are little-endian.
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "backupd/core/state.h"
#include "base/status.h"
#include "store/store.h"

namespace dcs::backup::record {

// The format of these files; private to this folder.
inline constexpr const char *identity_tree = "identity", *identity_directory = "identity", *identity_file = "store";
inline constexpr const char *host_tree = "host", *hosts_directory = "hosts";
inline constexpr const char *log_file = "log", *state_file = "state";
inline constexpr std::uint8_t identity_version = 1, host_version = 1, head_version = 1;
inline constexpr std::size_t prefix_bytes = 8;       // length and checksum of a head
inline constexpr std::size_t head_bytes_max = 4096;  // its only text is a login name

struct Head {
    GrainKey key;
    Incarnation incarnation = 0;
    std::uint32_t first_seq = 0, last_seq = 0;
    bool ended = false;
    std::uint64_t body_length = 0;
    std::uint32_t body_sum = 0;
};
// Takes a verified head with its prefix off the front of `bytes`.
Result<Head> next_head(std::string_view &bytes);

// Encodes the host's name with bytes outside [A-Za-z0-9_-] as %XX, and decodes it.
std::string host_directory(const std::string &host);
std::optional<std::string> host_of(std::string_view directory_name);

std::string encode_host(const HostReports &host);
// Decodes last, forgotten and log_length.
Result<HostReports> decode_host(std::string_view file);

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
