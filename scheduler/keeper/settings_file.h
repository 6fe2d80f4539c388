#pragma once
// The files that people write for the scheduler: opened, read, and one changed.
#include <string>

#include "base/status.h"

namespace dcs::keeper {

// A descriptor, which is the caller's. `what` as in "the host table": for errors. not_found, or io_error if it cannot
// be read; also if it is no file. One that root must not believe (daemon/directory.h) is refused.
Result<int> open_settings(const std::string &file, const std::string &what);
// All of it, at most 16 MiB; closes `fd`. io_error or limit.
Result<std::string> read_settings(int fd, const std::string &file, const std::string &what);
Result<std::string> read_settings(const std::string &file, const std::string &what);

// Rewrites the host table without the host's line and otherwise unchanged; on an error it is unchanged.
Status remove_from_host_table(const std::string &file, const std::string &host);

}  // namespace dcs::keeper
