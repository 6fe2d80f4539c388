#pragma once
// What the process outside of the container tells the one inside, and back. Both are this program, so no form is fixed.
#include <cstdint>
#include <string>
#include <vector>

namespace dcs::container {

struct Words {
    std::uint32_t rungs = 0;
    std::uint32_t umask = 077;
    std::string directory;  // in the container
    std::string program;    // the same; without a slash it is looked up in PATH
    std::vector<std::string> argv, env;
};

// Descriptors of the process inside.
inline constexpr int words_fd = 3, line_fd = 4, in_fd = 5, out_fd = 6, err_fd = 7, passed_fds = 5;

// On the line, a Unix socket whose messages keep their bounds and carry the sender's pid.
enum class Said : std::uint32_t {
    begun,   // by the grain's process itself, just before its exec
    failed,  // by the same: the exec failed; `value` is an errno
    confinement_failed,
    ended  // `value`: its status as of wait(2)
};
struct Line {
    Said said;
    std::int32_t value;
};

// A sealed file in memory with the words; -1 and errno.
int pack(const Words &words);
bool unpack(int fd, Words &words);

}  // namespace dcs::container
