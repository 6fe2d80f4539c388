#pragma once
// A host from which control programs call: what root's files in /etc/dcs say, as dcs_begin reads them.
#include <string>
#include <vector>

#include "base/status.h"

namespace dcs::commands {

inline constexpr char client_directory[] = "/etc/dcs";

// The scheduler that DIR/pool.conf names as HOST:PORT; empty: it names none, or there is no such file.
std::string scheduler_of(const std::string &directory);

// Is the pool that somebody means who names none that of another host? `directory`: where his private pool would be.
// Not in a program that dcs_begin has started already.
bool pool_is_elsewhere(const std::string &directory);
// Executes dcs_begin, which starts this program again with these words and credentials for that pool. Returns only if
// it cannot be executed.
Status run_by_begin(const std::vector<std::string> &words);

// Makes DIR, which everybody may read, and finds out whether DIR/pool.conf may name this scheduler. Code::refused if it
// names another pool.
Status prepare_client(const std::string &directory, const std::string &scheduler);
// Writes DIR/pool.conf, unless it names that scheduler already. Keys and certificates are in DIR/pki.
Status write_client(const std::string &directory, const std::string &scheduler);

}  // namespace dcs::commands
