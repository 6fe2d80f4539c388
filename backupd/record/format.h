#pragma once
// The format of the backup's files. Private to this folder.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "backupd/core/state.h"
#include "base/status.h"

namespace dcs::backup::record {

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

}  // namespace dcs::backup::record
