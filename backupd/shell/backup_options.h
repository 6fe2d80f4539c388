#pragma once
// The options of dcs_backupd: of its command line and of its configuration file.
#include <string>

#include "base/limits.h"
#include "daemon/options.h"

namespace dcs::backup {

struct BackupOptions {
    std::string directory, scheduler, tls, pki, promote, log_level = "info";
    int ready_fd = -1;
    int hold_mb = static_cast<int>(limits::backup_held_mb);

    std::uint64_t most_bytes() const { return static_cast<std::uint64_t>(hold_mb) << 20; }
};

// Options that go into the fields of `into`, which outlives it.
CommandLine command_line(BackupOptions &into);

}  // namespace dcs::backup
