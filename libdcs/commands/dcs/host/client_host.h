#pragma once
// A host of control programs: what root's files in /etc/dcs say, as dcs_begin reads them.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "net/tls.h"
#include "wire/message.h"

namespace dcs::commands {

// What a host of the pool may be to it, as people say it; numbers as in wire::CreateToken.
inline constexpr char role_words[] = "server|client|backup";  // of --role
inline std::uint8_t number_of_role(std::string_view role) { return role == "server" ? 0 : role == "client" ? 1 : 2; }

inline const char *word_of_role(std::uint8_t role) { return role == 0 ? "server" : role == 1 ? "client" : "backup"; }

inline constexpr char client_directory[] = "/etc/dcs";

// The scheduler that DIR/pool.conf names as HOST:PORT; empty: it names none, or there is no such file.
std::string scheduler_of(const std::string &directory);

// Executes dcs_begin, which starts this program again with these words and credentials for the pool of this scheduler.
// Returns only if it cannot be executed.
Status run_by_begin(const std::vector<std::string> &words, const std::string &scheduler);

// Makes DIR, which all users may read, and finds out whether DIR/pool.conf may name this scheduler. Code::refused if it
// names another pool.
Status prepare_client(const std::string &directory, const std::string &scheduler);
// The group of this host for which dcs_begin is setgid, if there is one.
std::optional<std::uint32_t> group_of_key();
// Writes DIR/pool.conf, unless it names that scheduler already. Keys and certificates are in DIR/pki.
Status write_client(const std::string &directory, const std::string &scheduler);

// One message to a pool's scheduler from a host that has no connection to it, and the answer: of the first of these
// addresses, each HOST:PORT, where there is a scheduler. An answer is any message. `self` may be
// empty. Waits at most half a minute for each.
Result<wire::AnyMessage> ask_scheduler(const std::vector<std::string> &addresses, const net::TlsSelf &self,
                                       net::TlsTrust trust, const wire::AnyMessage &question);

}  // namespace dcs::commands
