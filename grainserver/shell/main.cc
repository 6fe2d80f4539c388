// dcs_grainserver: runs grains for a scheduler. The processes are children of dcs_launcher, which
// this program starts and which survives it.
#include <cstdio>
#include <sstream>
#include <string>
#include <vector>

#include <climits>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/limits.h"
#include "daemon/log.h"
#include "daemon/notify.h"
#include "daemon/options.h"
#include "daemon/ready.h"
#include "daemon/signals.h"
#include "grainserver/shell/server.h"
#include "net/tcp_socket.h"

namespace {
using namespace dcs;

void write_log(server::Level level, const std::string &text) {
    switch (level) {
    case server::Level::debug: return log_debug(text);
    case server::Level::info: return log_info(text);
    case server::Level::warning: return log_warn(text);
    case server::Level::error: return log_error(text);
    }
}

std::string default_binary_class() {
    utsname host{};
    return ::uname(&host) == 0 ? std::string(host.machine) + "-linux-gnu" : "unknown";
}

// In the directory of this executable, whatever name it was started by.
std::string launcher_beside_us() {
    char path[PATH_MAX];
    const ssize_t n = ::readlink("/proc/self/exe", path, sizeof path - 1);
    const std::string self(path, n > 0 ? static_cast<std::size_t>(n) : 0);
    return self.substr(0, self.rfind('/') + 1) + "dcs_launcher";
}

std::vector<std::string> words_of(const std::string &text) {
    std::vector<std::string> words;
    std::istringstream in(text);
    for (std::string word; in >> word;) words.push_back(word);
    return words;
}

std::string wrong_with(const server::ServerOptions &o) {
    if (o.name.size() > limits::name_bytes)
        return "--name is longer than " + std::to_string(limits::name_bytes) + " bytes";
    for (const char c : o.name)
        if (static_cast<unsigned char>(c) <= ' ' || c == 0x7f) return "--name contains a space or a control character";
    if (o.name.empty() || o.directory.empty() || o.scheduler.empty())
        return "--name, --dir and --scheduler may not be empty";
    if (!o.backup.empty() && o.backup.find('/') == std::string::npos && !net::parse_tcp_address(o.backup))
        return "--backup is HOST:PORT, or a socket of this host, with a slash in its name";
    if (!o.runner.empty() && (o.runner[0][0] != '/' || ::access(o.runner[0].c_str(), X_OK) != 0))
        return "--runner begins with the absolute path of a program that can be executed here";
    return {};
}

// The owner's options for grains; see GRAIN_HOSTS.md.
struct OwnerWords {
    std::string run_as, accounts = "none", uids, cgroups = "auto", network = "yes", writable, launcher = "self";
    int memory_mb = 0, processes = 512, cpu_s = 0, file_mb = 0, disk_mb = 0;
};
Status take_words(const OwnerWords &w, server::ServerOptions &o) {
    if (w.run_as != "" && w.run_as != "self" && w.run_as != "users")
        return fail(Code::invalid, "--run-as must be self or users");
    o.identity.users = w.run_as.empty() ? ::geteuid() == 0 : w.run_as == "users";
    if (o.identity.users && ::geteuid() != 0)
        return fail(Code::invalid, "--run-as users needs root; an ordinary user can only run grains under his own "
                                   "account (--run-as self)");
    auto accounts = server::parse_accounts(w.accounts);
    if (!accounts) return accounts.status();
    o.identity.accounts = std::move(*accounts);
    if (!w.uids.empty())
        if (Status s = server::parse_uids(w.uids, o.identity.first, o.identity.last); !s) return s;
    if (w.cgroups != "auto" && w.cgroups != "none") return fail(Code::invalid, "--cgroups must be auto or none");
    o.use_cgroups = w.cgroups == "auto";
    if (w.launcher != "self" && w.launcher != "service") return fail(Code::invalid, "--launcher is self or service");
    o.own_launcher = w.launcher == "self";
    if (w.network != "yes" && w.network != "none") return fail(Code::invalid, "--grain-network must be yes or none");
    o.rungs.network = w.network == "yes";
    std::istringstream paths(w.writable);
    for (std::string path; std::getline(paths, path, ',');) o.rungs.writable.push_back(path);
    if (Status s = server::check(o.rungs); !s) return s;
    o.limits.memory_mb = w.memory_mb;
    o.limits.processes = w.processes;
    o.limits.cpu_s = w.cpu_s;
    o.limits.file_mb = w.file_mb;
    o.limits.disk_mb = w.disk_mb;
    return Status::ok();
}

int fail_with(const std::string &text, int code) {
    std::fprintf(stderr, "dcs_grainserver: %s\n", text.c_str());
    return code;
}
}  // namespace

int main(int argc, char **argv) {
    server::ServerOptions o;
    o.binary_class = default_binary_class();
    o.launcher_program = launcher_beside_us();
    std::string level = "off";
    std::string runner;
    std::string courtesy = "watch";
    int ready_fd = -1;
    OwnerWords words;
    take_options({"dcs_grainserver", "Runs grains on this host for a DCS scheduler.", {
        {"name", &o.name, "NAME", "name of this server in the scheduler's host table", true},
        {"dir", &o.directory, "DIR", "directory of this server: grains, slots, locks", true},
        {"scheduler", &o.scheduler, "SOCKET|HOST:PORT[,..]",
         "the scheduler: its socket for grain servers on this host, or the addresses of its TLS port", true},
        {"backup", &o.backup, "SOCKET|HOST:PORT", "the passive backup: its socket on this host, or its address "
                                                  "as seen from here (default: set by the scheduler)"},
        {"pki", &o.pki_directory, "DIR", "key and certificate for the TLS port (default: pki in --dir)"},
        {"binary-class", &o.binary_class, "CLASS", "which executables this host runs"},
        {"run-as", &words.run_as, "WHO", "self: all grains as this server's user; users: each user's under a separate "
                                         "account (default for root)"},
        {"accounts", &words.accounts, "LIST", "logins that grains may run under if the scheduler permits it too; none "
                                              "(default): only anonymous uids"},
        {"anonymous-uids", &words.uids, "FIRST-LAST", "range of anonymous uids; default 2000000000-2000065535"},
        {"slots-dir", &o.slots_directory, "DIR", "directory of slots that servers of this host share"},
        {"max-memory-mb", &words.memory_mb, "N", "memory of a grain; 0 (default): no limit"},
        {"max-processes", &words.processes, "N", "processes and threads of a grain; default 512, 0: no limit"},
        {"max-cpu-s", &words.cpu_s, "N", "processor seconds of a grain; 0 (default): no limit"},
        {"max-file-mb", &words.file_mb, "N", "size of a file that a grain writes; 0 (default): no limit"},
        {"max-disk-mb", &words.disk_mb, "N", "size of a grain's directory; 0 (default): no limit"},
        {"confine", &o.rungs.level, "LEVEL", "auto (default): what the host supports without restricting programs; or "
                                            "limits, filter, scope, files, namespaces, each with those before it"},
        {"grain-network", &words.network, "yes|none", "none: grains get only Unix sockets"},
        {"writable", &words.writable, "DIR,...", "further directories that grains may write with --confine files"},
        {"cgroups", &words.cgroups, "WHICH", "auto (default): use them if available; none"},
        {"library-mb", &o.library_mb, "N", "size of the library of contents, in megabytes (default 4096)"},
        {"runner", &runner, "WORDS", "runs the programs, as in \"/usr/bin/qemu-aarch64-static -0 {name}\""},
        {"courtesy", &courtesy, "watch|priority",
         "watch (default): grains are given back when the owner needs the host; "
         "priority: they only have the lowest priority"},
        {"launcher", &words.launcher, "WHO",
         "self (default): this server starts dcs_launcher; service: a service manager does"},
        {"ready-fd", &ready_fd, "N", "write \"ready\" to this descriptor when serving"},
        {"log-level", &level, "LEVEL", "off (default), error, warn, info or debug"},
    }}, argc, argv);
    if (const Status s = take_words(words, o); !s) return fail_with(s.text, 2);
    o.runner = words_of(runner);
    if (const std::string wrong = wrong_with(o); !wrong.empty()) return fail_with(wrong, 2);
    if (courtesy != "watch" && courtesy != "priority") return fail_with("--courtesy is watch or priority", 2);
    o.watch = courtesy == "watch";
    const Result<Level> log_level = level_of(level);
    if (!log_level) return fail_with(log_level.status().text, 2);
    log_open("grainserver " + o.name, *log_level);
    Result<Signals> signals = Signals::open();
    if (!signals) return fail_with(signals.status().text, 1);
    const ServiceManager manager = ServiceManager::find();
    manager.tell("STATUS=finding the grains in " + o.directory);
    server::Server server(write_log);
    if (const Status s = server.open(o); !s) {
        const bool taken = s.code == Code::refused;
        return fail_with(taken ? "another grain server has this directory: " + s.text : s.text, taken ? 4 : 1);
    }
    if (const Status s = tell_ready(ready_fd); !s) log_warn(s.text);
    manager.tell("READY=1\nSTATUS=serving");
    const Status served = server.run(*signals);
    manager.tell("STOPPING=1\nSTATUS=grains continue to run");
    if (!served) return fail_with(served.text, 1);
    log_info("stopped; grains continue to run");
    return 0;
}
