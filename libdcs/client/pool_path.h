#pragma once
// Where the pool is. This is the one place that decides it for libdcs and for `dcs`; dcs_begin, which is installed
// setgid and uses no library of ours, has the same rule (commands/dcs_begin/main.c, find_pool). In this order:
//
//   1. $DCS_DIR, an absolute path;
//   2. the user's own pool in $XDG_STATE_HOME/dcs, else ~/.local/state/dcs, if there is one: a user who made a pool of
//      their own means that one;
//   3. what root says in /etc/dcs/pool.conf: `dir DIR`, the scheduler runs on this host; `scheduler HOST:PORT`, it runs
//      on another one, and programs get there by dcs_begin;
//   4. where the user's own pool would be.
#include <string>
#include <string_view>

#include "base/status.h"

namespace dcs::client {

inline constexpr const char *host_folder = "/etc/dcs", *host_file = "/etc/dcs/pool.conf";

// What pool.conf says; empty fields: nothing.
struct HostConf {
    std::string dir, scheduler, pki;
};
Result<HostConf> parse_host_conf(std::string_view text);
// Of this host; empty if there is no such file. Code::refused: others than root could have written it.
Result<HostConf> host_conf();

struct PoolPlace {
    enum class Kind { named, own, host, elsewhere, none };
    Kind kind = Kind::none;
    std::string directory;  // absolute; elsewhere: empty
    std::string scheduler;  // elsewhere: its HOST:PORT
};
// By the rule above. Code::invalid, refused: what is wrong with DCS_DIR or with pool.conf.
Result<PoolPlace> find_pool();
// For a connection: where a process found its pool once, it stays, unless DCS_DIR says otherwise. Code::no_auth: the
// scheduler runs on another host.
Result<std::string> pool_directory();
// Where the user's own pool is or would be. Code::invalid: the account has no home.
Result<std::string> own_pool_directory();

}  // namespace dcs::client
