#include "backupd/shell/backup_options.h"

#include "net/socket_calls.h"

namespace dcs::backup {
namespace {

Status check(const BackupOptions &o) {
    if (!o.promote.empty()) return Status::ok();
    if (o.scheduler.empty())
        return fail(Code::invalid, "--scheduler is missing: the scheduler's socket, or its TLS port HOST:PORT");
    if (Status s = net::check_scheduler_option(o.scheduler); !s) return s;
    if (const auto at = net::parse_tcp_address(o.tls); !o.tls.empty() && !at)
        return fail(Code::invalid, "--tls: " + at.status().text);
    const bool socket = o.scheduler.find('/') != std::string::npos;
    if (socket && !o.tls.empty())
        return fail(Code::invalid, "--tls needs a --scheduler at HOST:PORT, which decides which hosts may connect");
    if (!socket && o.tls.empty())
        return fail(Code::invalid,
                    "--scheduler HOST:PORT needs --tls ADDRESS:PORT, the port for grain servers; a "
                    "socket of this host has a slash in its name");
    return Status::ok();
}

}  // namespace

CommandLine command_line(BackupOptions &into) {
    return {
        .program = "dcs_backupd",
        .purpose = "Accepts grain servers' reports while the scheduler is away, and hands them over when it is back.",
        // clang-format off
        .options =
        {{"dir", &into.directory, "DIR", "working directory, with lock, backup.sock, state/ and pki/", true},
         {.name = "scheduler", .into = &into.scheduler, .value = "SOCKET|HOST:PORT[,..]",
          .help = "the scheduler: its socket for grain servers on this host, or the addresses of its TLS port (not "
                  "with --promote)", .list = true},
         {"tls", &into.tls, "ADDRESS:PORT", "TLS port for grain servers of other hosts"},
         {"pki", &into.pki, "DIR", "key and certificate for TLS (default: pki in --dir)"},
         {.name = "hold-mb", .into = &into.hold_mb, .value = "N",
          .help = "maximum size of the held reports in megabytes (default: 4096)", .where = Where::reload,
          .takes = megabytes_from(1)},
         {"promote", &into.promote, "DIR",
          "do not serve: make the copy of the scheduler's store the state directory DIR of a new scheduler, and end",
          false, Where::line},
         {.name = "log-level", .into = &into.log_level, .value = "LEVEL",
          .help = "off, error, warn, info or debug (default: info)", .where = Where::reload,
          .takes = one_of("off|error|warn|info|debug")},
         {"ready-fd", &into.ready_fd, "N", "write \"ready\" to this descriptor when serving", false, Where::line}},
        // clang-format on
        .check = [&into] { return check(into); }};
}

}  // namespace dcs::backup
