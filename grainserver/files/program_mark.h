#pragma once
// Identifies the file from which a launcher was started. A launcher survives its server, and an upgrade may replace its
// program file meanwhile; the server compares the two to replace an idle launcher.
#include <string>

#include <sys/types.h>

namespace dcs::files {

// In the server's directory; written by the launcher before it listens. A launcher of release 0.1 writes none.
inline constexpr const char *program_mark_name = "launcher.program";
inline constexpr std::size_t program_mark_max = 256;  // bytes

// Process `pid`, and device, inode, modification time and size of the file at `path`; empty on failure.
std::string program_mark(pid_t pid, const std::string &path);

}  // namespace dcs::files
