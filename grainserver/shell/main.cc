// dcs_grainserver: runs grains for a scheduler. The processes are children of dcs_launcher, which
// this program starts and which survives it.
#include <cstdio>
#include <string>

#include "base/program_start.h"
#include "daemon/configuration.h"
#include "daemon/log.h"
#include "daemon/service.h"
#include "grainserver/shell/server.h"
#include "grainserver/shell/server_options.h"

namespace {
using namespace dcs;

int fail_with(const std::string &text, int code) {
    std::fprintf(stderr, "dcs_grainserver: %s\n", text.c_str());
    return code;
}
}  // namespace

int main(int argc, char **argv) {
    keep_buffers();
    server::OptionWords words;
    Configuration configuration = Configuration::take(server::command_line(words), argc, argv);
    log_open("grainserver " + words.server.name, *level_of(words.log_level));
    if (const Status s = check_ready_fd(words.ready_fd); !s) return fail_with(s.text, 2);
    Result<Signals> signals = Signals::open();
    if (!signals) return fail_with(signals.status().text, 1);
    const ServiceManager manager = ServiceManager::find();
    manager.tell("STATUS=finding the grains in " + words.server.directory);
    server::Server server(log_line, configuration, manager);
    if (const Status s = server.open(words.server); !s) {
        const bool taken = s.code == Code::refused;
        return fail_with(taken ? "another grain server uses this directory: " + s.text : s.text, taken ? 4 : 1);
    }
    if (const Status s = tell_ready(words.ready_fd); !s) log_warn(s.text);
    manager.tell("READY=1\nSTATUS=serving");
    const Status served = server.run(*signals);
    manager.tell("STOPPING=1\nSTATUS=grains continue to run");
    if (!served) return fail_with(served.text, 1);
    log_info("stopped; running grains continue");
    return 0;
}
