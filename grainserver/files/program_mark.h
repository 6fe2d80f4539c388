#pragma once
// Which file a launcher was started from. A launcher outlives its server, and an upgrade puts another file in the place
// of its program meanwhile; its server compares the two to replace a launcher that is idle.
#include <string>
#include <string_view>

#include <sys/types.h>

namespace dcs::files {

// In the server's directory, written by the launcher before it listens. A launcher of release 0.1 writes none.
inline constexpr const char *program_mark_name = "launcher.program";
inline constexpr std::size_t program_mark_max = 256;  // bytes

// Process `pid`, and device, inode, time of change and size of the file at `path`; empty if it cannot be looked at.
std::string program_mark(pid_t pid, const std::string &path);

}  // namespace dcs::files
