// dcs_grainserver: runs grains for a scheduler. The processes are children of dcs_launcher, which
// this program starts and which outlives it.
#include <cstdio>
#include <string>

#include <climits>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/limits.h"
#include "daemon/log.h"
#include "daemon/options.h"
#include "daemon/ready.h"
#include "daemon/signals.h"
#include "grainserver/shell/server.h"

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

// Beside our own executable, whatever name it was started by.
std::string launcher_beside_us() {
    char path[PATH_MAX];
    const ssize_t n = ::readlink("/proc/self/exe", path, sizeof path - 1);
    const std::string self(path, n > 0 ? static_cast<std::size_t>(n) : 0);
    return self.substr(0, self.rfind('/') + 1) + "dcs_launcher";
}

std::string wrong_with(const server::ServerOptions &o) {
    if (o.name.size() > limits::name_bytes)
        return "--name is longer than " + std::to_string(limits::name_bytes) + " bytes";
    for (const char c : o.name)
        if (static_cast<unsigned char>(c) <= ' ' || c == 0x7f) return "--name holds a space or a control character";
    if (o.name.empty() || o.directory.empty() || o.scheduler.empty())
        return "--name, --dir and --scheduler may not be empty";
    return {};
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
    std::string courtesy = "watch";
    int ready_fd = -1;
    take_options({"dcs_grainserver", "Runs grains on this host for a DCS scheduler.", {
        {"name", &o.name, "NAME", "name of this server in the scheduler's host table", true},
        {"dir", &o.directory, "DIR", "directory of this server: grains, slots, locks", true},
        {"scheduler", &o.scheduler, "SOCKET", "the scheduler's socket for grain servers", true},
        {"binary-class", &o.binary_class, "CLASS", "which executables this host runs"},
        {"courtesy", &courtesy, "watch|priority",
         "watch (default): grains are given back when the owner needs the host; "
         "priority: they only have the lowest priority"},
        {"ready-fd", &ready_fd, "N", "write \"ready\" there when serving"},
        {"log-level", &level, "LEVEL", "off (default), error, warn, info or debug"},
    }}, argc, argv);
    if (const std::string wrong = wrong_with(o); !wrong.empty()) return fail_with(wrong, 2);
    if (courtesy != "watch" && courtesy != "priority") return fail_with("--courtesy is watch or priority", 2);
    o.watch = courtesy == "watch";
    const Result<Level> log_level = level_of(level);
    if (!log_level) return fail_with(log_level.status().text, 2);
    log_open("grainserver " + o.name, *log_level);
    Result<Signals> signals = Signals::open();
    if (!signals) return fail_with(signals.status().text, 1);
    server::Server server(write_log);
    if (const Status s = server.open(o); !s) {
        const bool taken = s.code == Code::refused;
        return fail_with(taken ? "another grain server has this directory: " + s.text : s.text, taken ? 4 : 1);
    }
    if (const Status s = tell_ready(ready_fd); !s) log_warn(s.text);
    (void)notify_service_manager("READY=1");
    server.run(*signals);
    log_info("stopped; grains run on");
    return 0;
}
