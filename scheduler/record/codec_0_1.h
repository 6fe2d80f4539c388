#pragma once
// The records of release 0.1, which had no numbered fields. They are read, and written in today's form when their
// entities change.
#include "base/bytes.h"
#include "scheduler/record/fields.h"

namespace dcs::record {

inline constexpr std::uint8_t session_0_1 = 2, grain_0_1 = 5, auth_0_1 = 2, hosts_0_1 = 2, trust_0_1 = 3,
                              handed_over_0_1 = 1;

// From behind the version byte, of a grain from behind its number. What does not fit spoils the bytes.
void get_0_1(ByteReader &r, core::SessionInfo &info);
void get_0_1(ByteReader &r, core::DurableGrain &grain, const HostIds &ids);
void get_0_1(ByteReader &r, AuthTable &table);
void get_0_1(ByteReader &r, HostsTable &table);
void get_0_1(ByteReader &r, core::Trust &trust);
void get_0_1(ByteReader &r, HandedOverTable &table);

}  // namespace dcs::record
