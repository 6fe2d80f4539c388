#pragma once
// Entities as bytes on disk. A record is: length of the body, u32 CRC-32C of the body, body; a body
// begins with the format's version byte. Fixed numbers are little-endian, the others (lengths too)
// have seven bits a byte, low ones first (base/bytes.h). Hosts are written by
// name, because a HostId lives no longer than the process.
//
// To change a format: give it the next version number, keep reading the old one, and say in
// docs what an older scheduler does with it (it sets the entity aside by name).
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "scheduler/core/state.h"

namespace dcs::record {

// A grain as it stands on disk: `grain.host` and `grain.nogo` are replaced by names.
struct GrainRecord {
    GrainNumber number = 0;
    core::Grain grain;            // no host is set in it, volatile fields as constructed
    std::string host;             // empty: none
    std::vector<std::string> nogo;
    std::string old_host;         // of its old lease
    std::vector<std::string> move_hosts;  // of its moves, one each
};

std::string encode_session(const core::SessionInfo &info);
Result<core::SessionInfo> decode_session(std::string_view file);

// `state` gives the names of the hosts.
std::string encode_grain(const core::State &state, GrainNumber number, const core::Grain &grain);
// Takes one record off the front of `log`, verified but not decoded.
struct GrainEntry {
    GrainNumber number = 0;
    std::string_view record;      // for decode_grain()
};
Result<GrainEntry> next_grain(std::string_view &log);
// A file that holds exactly one record.
Result<GrainRecord> decode_grain(std::string_view file);

std::string encode_auth(const std::map<TokenHash, core::AuthEntry> &table);
Result<std::map<TokenHash, core::AuthEntry>> decode_auth(std::string_view file);

// The statistics of hosts and what was set of them, by name.
struct HostRecord { core::HostTotals totals; core::HostSetting setting; };
std::string encode_hosts(const core::State &state);
Result<std::map<std::string, HostRecord>> decode_hosts(std::string_view file);

std::string encode_trust(const core::Trust &trust);
Result<core::Trust> decode_trust(std::string_view file);

using HandedOver = std::map<std::string, core::HandedOver>;
std::string encode_handed_over(const HandedOver &table);
Result<HandedOver> decode_handed_over(std::string_view file);

}  // namespace dcs::record
