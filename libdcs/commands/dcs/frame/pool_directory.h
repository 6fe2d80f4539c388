#pragma once
// The directory of a private pool: what lies where, what its text files say, which daemons it has.
//
//   pool                  servers N / slots K / interval S / courtesy watch ..., written by `dcs up`
//   up.lock               held while `dcs up` or `dcs down` works on the directory
//   maps.lock             which sessions a `dcs map` works for (locks/files/session_claims.h)
//   scheduler/            lock, user.sock, server.sock, hosts, state/, log
//   backup/               lock, backup.sock, state/, log
//   page/                 lock, url, log: of `dcs page`
//   servers/NAME/         lock, launcher.lock, launcher.sock, log, slots/, grains/
//   pilots/               of `dcs pilot` (commands/dcs/pilot/place.h)
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/option_table.h"

struct d_pool;

namespace dcs::commands {

struct PoolNumbers {
    int servers = 0;
    int slots = 1;
    double interval_s = 10;
    std::string courtesy = "priority";  // of the servers: watch, priority or none
    std::string mirror = "off";         // whether the backup copies the store: off, lagging, sync
    int pilots = 0, pilot_slots = 1;    // hosts whose servers batch jobs run
    std::string resources;              // of local1, as in the host table; empty: what its server finds
    std::string listen;                 // ADDRESS:PORT where hosts of pilots reach the scheduler; empty: nowhere
    bool operator==(const PoolNumbers &) const = default;
};

inline constexpr std::size_t most_resources = 32768;  // as text
inline constexpr int most_servers = 1000, most_slots = 1024;
inline constexpr double least_interval_s = 0.05, most_interval_s = 86400;

std::string absolute_path(const std::string &path);

inline constexpr const char *courtesies = "watch|priority|none", *mirror_modes = "off|lagging|sync";
std::string pool_text(const PoolNumbers &numbers);
Result<PoolNumbers> numbers_of_pool_text(std::string_view text);
// What the scheduler reads: one line per server. Supervision scales with the interval.
std::string host_table_text(const PoolNumbers &numbers, const std::string &binary_class);
std::string binary_class_of_this_host();  // "x86_64-linux-gnu"

struct Daemon {
    std::string role;  // "scheduler", "backup", "grainserver", "launcher"
    std::string name;  // "scheduler", "local1"
    std::string directory, lock;
    bool up = false;
    int pid = 0;        // 0: not known
    bool known = true;  // false: its lock is not ours to look at, so `up` says nothing
};

class Pool {
public:
    explicit Pool(std::string directory) : directory_(std::move(directory)) {}
    const std::string &directory() const { return directory_; }
    std::string path(const std::string &name) const { return directory_ + "/" + name; }
    std::string server_directory(const std::string &name) const { return path("servers/") + name; }

    bool exists() const;  // the directory is there
    // Whose pool lies there. `dcs up` and `dcs down` touch what `dcs up` made, and nothing else.
    enum class Maker {
        none,    // there is no pool
        dcs_up,  // with the file `pool`; or, from a `dcs up` that was interrupted, with a host table that names it
        other,   // an administrator's, or one that the caller may not look into
    };
    Maker maker() const;
    Result<PoolNumbers> numbers() const;            // of the file `pool`; not_found if there is none
    std::vector<std::string> server_names() const;  // directories under servers/, local2 before local10

    Daemon scheduler() const;
    Daemon backup() const;
    Daemon page() const;
    std::string page_url() const;  // empty: none runs
    Daemon server(const std::string &name) const;
    Daemon launcher(const std::string &name) const;
    // The scheduler, the backup if there is one, and all servers, those of the file `pool` and
    // those that have a directory and live.
    std::vector<Daemon> daemons() const;

private:
    Daemon look(const char *role, const std::string &name, const std::string &directory, const char *lock) const;
    std::string directory_;
};

// Where background processes of `dcs submit` have their logs, SESSION.log: in a pool of `dcs up` that is the caller's,
// otherwise beside the caller's own pool.
Result<std::string> submit_folder(const std::string &pool_directory);

// Why `dcs up` and `dcs down` leave a pool of Maker::other alone.
std::string not_by_up(const Pool &pool);

// Small text files. The pool may be another user's: only a regular file is opened, so that no FIFO holds the command.
Result<std::string> read_file(const std::string &path, std::size_t most);
Status write_file(const std::string &path, const std::string &text);  // replaced in one step, mode 0600
// A document that the caller names, which may be a pipe.
Result<std::string> read_document(const std::string &path, std::size_t most);
// A document that a verb was asked for, written over what is there; "-": to standard output.
Status write_document(const std::string &path, const std::string &text);
// To write it; null with errno. A link of another user in a directory in which all may write is not followed (EACCES),
// as with the kernel's fs.protected_symlinks.
std::FILE *open_document(const std::string &path, bool append);

// All of one stream to another, which is not flushed. `error`: of the side that failed.
struct Copied {
    bool read = true, written = true;
    int error = 0;
};
Copied copy_stream(std::FILE *from, std::FILE *to);

// What a daemon has noted of its configuration (base/option_table.h).

// Of the daemon whose directory this is. not_found: it never noted anything; io_error: it cannot be read, or is no
// record.
Result<ConfigRecord> daemon_record(const std::string &directory);

// The pool that this command works with, as a handle of the library.

// Before open_this_pool: the library's default pool, which the environment names.
d_pool &this_pool();
void open_this_pool(const std::string &directory);
// Of sessions that this process opens from here on.
void describe_new_sessions(const std::string &label, std::int32_t nice);

}  // namespace dcs::commands
