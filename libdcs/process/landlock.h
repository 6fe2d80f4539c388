#pragma once
// The kernel's Landlock: what this process, and all that it starts, may still do with files. Rights are never given
// back. Thin calls: errno values, and no allocation, so that they can stand between fork and exec.
#include <cstdint>

namespace dcs::landlock {

// Rights to files (linux/landlock.h of version 7; older headers lack some).
inline constexpr std::uint64_t execute = 1, write_file = 2, read_file = 4, read_directory = 8, remove_directory = 16,
                               remove_file = 32, make_device = 64 | 2048, make_directory = 128, make_file = 256,
                               make_socket = 512, make_fifo = 1024, make_link = 4096, move = 8192, truncate = 16384,
                               device_calls = 32768;
inline constexpr std::uint64_t of_files = execute | write_file | read_file | truncate | device_calls;
// What is fenced besides files.
inline constexpr std::uint64_t abstract_sockets = 1, signals = 2;
inline constexpr int scoping_since = 6;  // the version that has these two (Linux 6.12)

int version();                            // 0: this kernel has none
std::uint64_t rights_known(int version);  // to files
std::uint64_t scopes_known(int version);
// A ruleset that forbids all of `rights` and `scopes`; a descriptor, or -1 and errno.
int new_ruleset(std::uint64_t rights, std::uint64_t scopes) noexcept;
// What `fd` is open to keeps `rights`: a file, or a directory and all below it. An errno, or 0.
int allow(int ruleset, int fd, std::uint64_t rights) noexcept;
// For this thread and what it starts, irrevocably; no_new_privs must be set. An errno, or 0.
int restrict_self(int ruleset) noexcept;

}  // namespace dcs::landlock
