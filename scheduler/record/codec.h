#pragma once
// Entities as bytes on disk. A record is: length of the body, u32 CRC-32C of the body, body; a body begins with a
// version byte, a grain's then with its number, and the fields that fields.h lists follow. Hosts are written by name,
// because a HostId lives no longer than the process.
#include <map>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/status.h"
#include "scheduler/record/tables.h"

namespace dcs::record {

// Written now. Also read: what release 0.1 wrote (codec_0_1.cc). A record of a later version fails with Code::protocol:
// a newer release wrote it, with fields that its readers must know.
inline constexpr std::uint8_t record_version = 7;

struct GrainRecord {
    GrainNumber number = 0;
    core::DurableGrain grain;
};

std::string encode_session(const core::SessionInfo &info);
Result<core::SessionInfo> decode_session(std::string_view file);

// `state` gives the names of the hosts.
std::string encode_grain(const core::State &state, GrainNumber number, const core::DurableGrain &grain);
// Takes one record off the front of `log`, verified but not decoded.
struct GrainEntry {
    GrainNumber number = 0;
    std::string_view record;
};
Result<GrainEntry> next_grain(std::string_view &log);
// Takes one that next_grain() has verified: decoded into `grain`, which has its defaults.
Status take_verified(std::string_view &log, const HostIds &ids, core::DurableGrain &grain);
// A file that holds exactly one record.
Result<GrainRecord> decode_grain(std::string_view file, const HostIds &ids);

std::string encode_auth(const AuthTable &table);
Result<AuthTable> decode_auth(std::string_view file);

// The statistics of hosts and what was set of them, by name.
std::string encode_hosts(const core::State &state);
Result<std::map<std::string, core::DurableHost>> decode_hosts(std::string_view file);

std::string encode_trust(const core::Trust &trust);
Result<core::Trust> decode_trust(std::string_view file);

std::string encode_handed_over(const HandedOver &table);
Result<HandedOver> decode_handed_over(std::string_view file);

// What all records on disk have in common.
Status damaged(const std::string &what);
std::string framed(const std::string &body);
// Takes one record off the front of `in`, verified: its body.
Result<std::string_view> next_body(std::string_view &in);
// Passes over one that may be damaged; false: it is not there as a whole.
bool pass_record(std::string_view &in);

}  // namespace dcs::record
