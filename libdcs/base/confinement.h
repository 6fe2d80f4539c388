#pragma once
// The rungs by which a host confines grains, beyond what it always does (no new privileges, limits). Their
// words are used in options, in the host table and in what hosts are shown to have; docs/GRAIN_HOSTS.md tells
// what each takes from a grain.
#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"

namespace dcs {

using Rungs = std::uint32_t;  // a set of the following

inline constexpr Rungs rung_accounts = 1;     // each user's grains under a uid that no other user's have
inline constexpr Rungs rung_filter = 2;       // system calls that no computation needs are refused
inline constexpr Rungs rung_scope = 4;        // no signal, no tracing, no abstract socket to whatever is no part of it
inline constexpr Rungs rung_files = 8;        // nothing is written outside its room, its directory and shared scratch
inline constexpr Rungs rung_namespaces = 16;  // scratch, IPC and the sight of processes of its own
inline constexpr Rungs rung_no_network = 32;  // no sockets but Unix ones
inline constexpr Rungs all_rungs = 63;

// Words of the set in the order of above, with commas: "accounts,filter". Bits of none of them are left out;
// the empty set is "limits", what there always is.
std::string to_words(Rungs rungs);
// The other way; in any order, each at most once. Code::invalid names the word that is none.
Result<Rungs> rungs_of(std::string_view words);

}  // namespace dcs
