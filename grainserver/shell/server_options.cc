#include "grainserver/shell/server_options.h"

#include <sys/utsname.h>
#include <unistd.h>

#include <sstream>

#include "base/limits.h"
#include "base/program_start.h"
#include "base/text.h"
#include "grainserver/shell/found_resources.h"
#include "net/socket_calls.h"

namespace dcs::server {
namespace {

std::string default_binary_class() {
    utsname host{};
    return ::uname(&host) == 0 ? std::string(host.machine) + "-linux-gnu" : "unknown";
}

std::string wrong_with(const ServerOptions &o) {
    if (o.name.size() > limits::name_bytes)
        return "--name is longer than " + std::to_string(limits::name_bytes) + " bytes";
    for (const char c : o.name)
        if (static_cast<unsigned char>(c) <= ' ' || c == 0x7f) return "--name contains a space or a control character";
    if (o.name.empty() || o.directory.empty() || o.scheduler.empty())
        return "--name, --dir and --scheduler must not be empty";
    if (Status s = net::check_scheduler_option(o.scheduler); !s) return s.text;
    if (!o.backup.empty() && o.backup.find('/') == std::string::npos && !net::parse_tcp_address(o.backup))
        return "--backup must be HOST:PORT, or a socket of this host, whose name has a slash";
    if (const auto offers = found_resources(o.resources, nullptr, false); !offers)
        return "--resources: " + offers.status().text;
    if (!o.runner.empty() && (o.runner[0][0] != '/' || ::access(o.runner[0].c_str(), X_OK) != 0))
        return "--runner must begin with the absolute path of a program that this host can execute";
    return {};
}

// What the owner of the host permits; GRAIN_HOSTS.md has it in words.
Status take_words(const OptionWords &w, ServerOptions &o) {
    o.identity.users = w.run_as.empty() ? ::geteuid() == 0 : w.run_as == "users";
    if (o.identity.users && ::geteuid() != 0)
        return fail(Code::invalid,
                    "--run-as users needs root; an ordinary user can run grains only under their own "
                    "account (--run-as self)");
    auto accounts = parse_logins("--accounts", w.accounts, "none");
    if (!accounts) return accounts.status();
    o.identity.accounts = std::move(*accounts);
    auto of_users = parse_logins("--users", w.of_users, "all");
    if (!of_users) return of_users.status();
    o.identity.of_users = std::move(*of_users);
    if (!w.uids.empty())
        if (Status s = parse_uids(w.uids, o.identity.first, o.identity.last); !s) return s;
    o.use_cgroups = w.cgroups == "auto";
    o.own_launcher = w.launcher == "self";
    o.rungs.network = w.network == "yes";
    std::istringstream paths(w.writable);
    for (std::string path; std::getline(paths, path, ',');) o.rungs.writable.push_back(path);
    o.limits.memory_mb = w.memory_mb;
    o.limits.processes = w.processes;
    o.limits.cpu_s = w.cpu_s;
    o.limits.file_mb = w.file_mb;
    o.limits.disk_mb = w.disk_mb;
    return check(o.rungs);
}

Status check_words(OptionWords &w) {
    ServerOptions &o = w.server;
    o.rungs.writable.clear();
    if (Status s = take_words(w, o); !s) return s;
    for (const std::string_view word : words_of(w.runner, " \t\r\n")) o.runner.emplace_back(word);
    o.watch = w.courtesy == "watch";
    o.ordinary_priority = w.courtesy == "none";
    if (o.leave_idle.ns > 0 && o.leave_after.ns == 0)
        return fail(Code::invalid, "--leave-idle needs --leave-after: only a server of a batch job leaves");
    const std::string wrong = wrong_with(o);
    return wrong.empty() ? Status::ok() : fail(Code::invalid, wrong);
}

// An account may come later, or from a directory service that is away.
std::vector<std::string> doubtful_accounts(const IdentityOptions &identity) {
    std::vector<std::string> texts;
    const files::OwnerRules rules{.accounts = identity.accounts};
    for (const std::string &name : identity.accounts)
        if (const auto login = files::logins_of_this_host().login(rules, name); !login)
            texts.push_back("--accounts: `" + name + "`: " + login.status().text +
                            ", so grains of that user run under an anonymous uid");
    return texts;
}

Option choice(const char *name, std::string &into, const char *value, const char *help, const char *words,
              Where where = Where::anywhere) {
    return {.name = name, .into = &into, .value = value, .help = help, .where = where, .takes = one_of(words)};
}

Option most(const char *name, int &into, const char *help, std::optional<Takes> takes = {}) {
    return {.name = name, .into = &into, .value = "N", .help = help, .takes = takes};
}

}  // namespace

OptionWords::OptionWords() {
    server.binary_class = default_binary_class();
    server.launcher_program = own_folder() + "/dcs_launcher";
}

CommandLine command_line(OptionWords &words) {
    ServerOptions &o = words.server;
    return {
        .program = "dcs_grainserver",
        .purpose = "Runs grains on this host for a DCS scheduler.",
        // clang-format off
        .options =
        {{"name", &o.name, "NAME", "name of this server in the scheduler's host table", true},
         {"dir", &o.directory, "DIR", "directory of this server: grains, slots, locks", true},
         {.name = "scheduler", .into = &o.scheduler, .value = "SOCKET|HOST:PORT[,..]",
          .help = "the scheduler: its socket for grain servers on this host, or the addresses of its TLS port",
          .required = true, .list = true},
         {"backup", &o.backup, "SOCKET|HOST:PORT", "the passive backup: its socket on this host, or its address "
                                                   "as seen from here (default: set by the scheduler)"},
         {"pki", &o.pki_directory, "DIR", "key and certificate for the TLS port (default: pki in --dir)"},
         {"binary-class", &o.binary_class, "CLASS", "which executables this host runs"},
         choice("run-as", words.run_as, "WHO",
                "self: all grains as this server's user; users: each user's under a separate account (default for "
                "root)", "self|users"),
         {.name = "accounts", .into = &words.accounts, .value = "LIST",
          .help = "logins that grains may run under if the scheduler also permits it; none (default): only anonymous "
                  "uids",
          .list = true},
         {.name = "users", .into = &words.of_users, .value = "LIST",
          .help = "logins whose grains this server runs, whatever the host table says; all (default)",
          .list = true},
         {"anonymous-uids", &words.uids, "FIRST-LAST",
          "range of anonymous uids; default 2000000000-2000065535"},
         {"slots-dir", &o.slots_directory, "DIR", "directory of slots that servers of this host share"},
         most("max-memory-mb", words.memory_mb, "memory of a grain; 0 (default): no limit", megabytes_from(0)),
         most("max-processes", words.processes, "processes and threads of a grain; default 512, 0: no limit"),
         most("max-cpu-s", words.cpu_s, "processor seconds of a grain; 0 (default): no limit", seconds_from(0)),
         most("max-file-mb", words.file_mb, "size of a file that a grain writes; 0 (default): no limit",
              megabytes_from(0)),
         most("max-disk-mb", words.disk_mb, "size of a grain's directory; 0 (default): no limit", megabytes_from(0)),
         {"confine", &o.rungs.level, "LEVEL", "auto (default): what the host supports without restricting programs; "
                                              "or limits, filter, scope, files or namespaces, each including those "
                                              "before it"},
         choice("grain-network", words.network, "yes|none", "none: grains get only Unix sockets", "yes|none"),
         {.name = "writable", .into = &words.writable, .value = "DIR,...",
          .help = "further directories that grains may write with --confine files", .list = true},
         choice("cgroups", words.cgroups, "WHICH", "use control groups: auto (default), if available; none",
             "auto|none"),
         {.name = "library-mb", .into = &o.library_mb, .value = "N",
          .help = "size of the library of contents, in megabytes (default 4096)", .where = Where::reload,
          .takes = megabytes_from(0)},
         {.name = "images-mb", .into = &o.images_mb, .value = "N",
          .help = "size of unpacked images, in megabytes (default 32768)", .takes = megabytes_from(1)},
         {.name = "resources", .into = &o.resources, .value = "auto|no-devices|none|NAME=N,...",
          .help = "what this host offers besides cores: auto (default), a gpu for each /dev/nvidiaN, and container if "
                  "it can run containers; no-devices: the latter; none; or such as gpu=[0,1],scratch_gb=200"},
         {"runner", &words.runner, "WORDS", "runs the programs, as in \"/usr/bin/qemu-aarch64-static -0 {name}\""},
         choice("courtesy", words.courtesy, "watch|priority|none",
                "watch (default): grains leave when the owner needs the host; priority: they only have the lowest "
                "priority; none: they have that of other programs", "watch|priority|none"),
         {.name = "leave-after", .into = &o.leave_after, .value = "S",
          .help = "this server is part of a batch job: after S seconds, and on SIGTERM, it returns its grains with "
                  "their last checkpoints and ends with its launcher (default: it stays)", .where = Where::line},
         {.name = "leave-idle", .into = &o.leave_idle, .value = "S",
          .help = "with --leave-after: it also leaves after S seconds without a grain (default: it stays)",
          .where = Where::line},
         choice("launcher", words.launcher, "WHO",
                "self (default): this server starts dcs_launcher; service: a service manager does", "self|service"),
         {"ready-fd", &words.ready_fd, "N", "write \"ready\" to this descriptor when serving", false, Where::line},
         choice("log-level", words.log_level, "LEVEL", "off (default), error, warn, info or debug",
                "off|error|warn|info|debug", Where::reload)},
        // clang-format on
        .check = [&words] { return check_words(words); },
        .warn_of_files = [&words] { return doubtful_accounts(words.server.identity); }};
}

}  // namespace dcs::server
