// dcs ssh: dcs run in the words of ssh, for programs that start commands over a transport, such as GNU parallel.
#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "commands/dcs/frame/call.h"
#include "commands/dcs/frame/pool_directory.h"
#include "commands/dcs/frame/table.h"
#include "commands/dcs/query/scheduler.h"
#include "dcs.h"
#include "demand_options.h"

namespace dcs::commands {

extern const Verb run_verb;  // run.cc

namespace {

constexpr int ssh_failed = 255;  // of ssh itself
constexpr const char *any_host = "any";

// The hosts that a name means, as --class takes them; of a host, all of its classes.
std::optional<Failure> classes_of(const std::string &name, std::string &classes) {
    if (name == any_host) return std::nullopt;
    unsigned mask = 0;
    const int error = d_pool_host_class(&this_pool(), name.c_str(), &mask);
    if (error == D_OK) {
        classes = name;
        return std::nullopt;
    }
    if (error != D_E_NOT_FOUND && error != D_E_INVALID) return call_failure("HOST " + name, error);
    Info info;
    if (const Status asked = info.ask(wire::QueryType::hosts); !asked) return call_failure("the hosts", asked);
    const auto host =
        std::find_if(info.hosts.begin(), info.hosts.end(), [&](const auto &row) { return row.name == name; });
    if (host == info.hosts.end())
        return not_found_failure("there is no host and no class of hosts " + name,
                                 "`dcs host ls` lists both; `any` means all hosts");
    if (host->host_class != 0) classes = class_text(host->host_class);
    return std::nullopt;
}

// rsync speaks with its other end, and the input of a grain is read to its end first: both would wait for ever.
bool is_rsync_server(const std::string &text) {
    const std::string program = text.substr(0, text.find(' '));
    return program.substr(program.rfind('/') + 1) == "rsync" && text.find(" --server") != std::string::npos;
}

int ssh(const Call &call) {
    std::vector<std::string> words = call.arguments.words;
    const std::string name = words.empty() ? "" : words.front();
    if (!words.empty()) words.erase(words.begin());
    if (!words.empty() && words.front() == "--") words.erase(words.begin());
    if (words.empty())
        return call.fail(usage_failure("dcs ssh: " + std::string(name.empty() ? "HOST" : "CMD") + " is missing",
                                       "there is no shell at a terminal: `dcs ssh HOST CMD`"));
    const std::string text = joined(words, " ");
    if (is_rsync_server(text))
        return call.fail(
            usage_failure("dcs ssh: rsync does not work through a grain, whose input ends before it starts",
                          "leave out --transferfile, --return and --basefile if the hosts share the "
                          "directory; `dcs map --file {} --output NAME=PATH` copies files"));
    ::setenv("SHELL", "/bin/sh", 0);  // as sshd sets it; parallel runs its jobs by it, and without it none, in silence
    Call of_run = call;
    of_run.arguments.words = {"/bin/sh", "-c", text};
    std::string classes;
    if (const auto failure = classes_of(name, classes)) return call.fail(*failure);
    if (!classes.empty()) of_run.arguments.options.emplace_back("class", classes);
    return run_verb.run(of_run);
}

}  // namespace

extern const Verb ssh_verb = {
    .noun = "",
    .name = "ssh",
    .words = "HOST [--] CMD [ARG...]",
    .summary = "run a command as ssh does, for GNU parallel",
    .about = R"(Runs a command as a grain, in the words of ssh: a transport for programs that start commands by ssh.

Examples:
  dcs ssh any 'hostname; nproc'
  ls *.txt | parallel --ssh 'dcs ssh' -S 8/any gzip
  seq 100 | parallel --ssh 'dcs ssh --memory 4G' -S 2/gpu,8/any ./simulate
)",
    .options = with_demands({{"no-input", 'n', nullptr, no_value, "do not read standard input"}}),
    .notes =
        R"(HOST is a class of hosts (`dcs host ls`), `any`, or a host, which means all hosts of its classes: the
scheduler chooses the host. The words of CMD are joined with blanks for /bin/sh, which runs in the
current directory with the current environment. Otherwise it is `dcs run`: standard input is read to its
end first, so rsync, and therefore parallel's --transferfile and --return, do not work; hosts have to
share the files.

Exit code: the command's own; 128+N if signal N ended it; 255 DCS itself failed.
)",
    .run = ssh,
    .command_follows = true,
    .failure_exit = ssh_failed,
    .formats = false};

}  // namespace dcs::commands
