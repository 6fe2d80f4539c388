#pragma once
// A launcher in a directory of its own, spoken to as the server does, with real processes.
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>

#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/confinement.h"
#include "grainserver/files/grain_record.h"
#include "grainserver/files/launcher_calls.h"
#include "grainserver/files/owner_rules.h"
#include "process/table.h"
#include "grainserver/shell/launcher_client.h"
#include "grainserver/warden/start_launcher.h"
#include "locks/dcs_atoms.h"
#include "places.h"
#include "scratch_dir.h"
#include "slot_held.h"
#include "soon.h"

namespace bench {

using namespace dcs;
namespace files = dcs::files;

inline std::function<Status()> starts(const std::string &directory, const std::string &name,
                                      const std::string &slots = "", bool cgroups = true) {
    const bool planted = std::getenv("DCS_PLANTED") != nullptr;  // only the test build knows bugs
    const char *program = planted ? DCS_BINARY_DIR "/tests/dcs_launcher_test" : DCS_BINARY_DIR "/bin/dcs_launcher";
    const warden::LauncherOptions options{program, directory, name, slots, cgroups};
    return [starter = warden::LauncherStarter(options)]() mutable { return starter.start(); };
}

// Calls leave at once.
struct Client : server::LauncherClient {
    void send(const files::LauncherCall &call) {
        LauncherClient::send(call);
        flush();
    }
};

struct Place {
    ScratchDir dir;
    std::vector<pid_t> launchers;
    Client client;
    std::vector<std::string> exited;
    int next_grain = 1;
    std::string slots;
    bool cgroups = true;
    files::Limits limits;
    files::Account account;
    Rungs rungs = 0;
    std::vector<std::string> writable;

    explicit Place(bool with_cgroups = true, const std::string &slots_dir = "")
        : slots(slots_dir), cgroups(with_cgroups) {
        REQUIRE(make_directories(dir.path + "/grains"));
        client.open(dir.path, starts(dir.path, "local1", slots, cgroups));
        connect();
    }
    ~Place() {
        for (const pid_t pid : launchers) ::kill(pid, SIGTERM);
        for (const pid_t pid : launchers)
            soon([&] { return ::waitpid(pid, nullptr, WNOHANG) != 0 && ::kill(pid, 0) != 0; });
    }
    void connect() {
        client.close();
        std::string why;
        REQUIRE(soon([&] { return client.maintain(boot_clock(), why); }));
        const pid_t pid = locks::holder_of(dir.path + "/launcher.lock");
        REQUIRE(pid > 1);
        if (launchers.empty() || launchers.back() != pid) launchers.push_back(pid);
        REQUIRE(ask({files::Verb::list}).verb == files::Verb::end);  // from now on we hear of ends
    }
    std::string path(const std::string &grain) { return dir.path + "/grains/" + grain; }
    std::string room(const std::string &grain) { return path(grain) + "/room"; }

    std::string make(std::vector<std::string> argv, const std::string &input = "", std::vector<std::string> env = {},
                     const std::string &directory = "") {
        files::LaunchRecord r;
        r.boot_id = boot_id();
        r.program = argv.at(0);
        argv[0] = argv[0].substr(argv[0].rfind('/') + 1);
        r.argv = std::move(argv);
        r.env = std::move(env);
        r.directory = directory;
        r.next_seq = 3;
        r.limits = limits;
        r.account = account;
        r.rungs = rungs;
        r.writable = writable;
        const std::string grain = "local1,ann,1," + std::to_string(next_grain++) + ",1";
        REQUIRE(make_directories(room(grain)));
        put_file(room(grain) + "/input", input);
        if (account.change) {
            for (const std::string &open : {dir.path, dir.path + "/grains", path(grain)}) ::chmod(open.c_str(), 0711);
            for (const std::string &given : {room(grain) + "/input", room(grain)})
                REQUIRE(::chown(given.c_str(), account.uid, account.gid) == 0);
        }
        put_file(path(grain) + "/launch", files::pack(r), 0600);
        put_file(dir.path + "/rules", files::pack(rules_for(r)), 0600);
        return grain;
    }
    // An owner who allows just that.
    static files::OwnerRules rules_for(const files::LaunchRecord &r) {
        files::OwnerRules rules;
        rules.users = r.account.change;
        rules.first = files::first_login;
        rules.last = 4'000'000'000;
        rules.limits = r.limits;
        rules.rungs = r.rungs;
        rules.writable = r.writable;
        return rules;
    }
    std::string shell(const std::string &script) { return make({"/bin/sh", "-c", script}, "", {"PATH=/usr/bin:/bin"}); }
    // Sends and waits for the next answer that is no event.
    files::LauncherCall ask(const files::LauncherCall &call) {
        client.send(call);
        files::LauncherCall answer;
        REQUIRE(soon([&] {
            for (const files::LauncherCall &c : client.read())
                if (c.verb == files::Verb::exited) exited.push_back(c.dir);
                else if (c.verb != files::Verb::running) answer = c;
            return answer.verb != files::Verb::none;
        }));
        return answer;
    }
    files::LauncherCall start(const std::string &grain, int limit = 8) {
        return ask({files::Verb::start, grain, limit});
    }
    bool heard_exit(const std::string &grain) {
        for (const files::LauncherCall &c : client.read())
            if (c.verb == files::Verb::exited) exited.push_back(c.dir);
        for (const std::string &e : exited)
            if (e == grain) return true;
        return false;
    }
    files::ExitRecord exit_of(const std::string &grain) {
        REQUIRE(soon([&] { return heard_exit(grain); }));
        const Result<files::ExitRecord> r = files::unpack_exit(get_file(path(grain) + "/exit"));
        REQUIRE(r);
        return *r;
    }
    // Is what the kernel's control groups do for us there? Without, the test says so and is not counted as passed.
    bool has_groups(const std::string &word) {
        const std::string log = get_file(dir.path + "/launcher.log");
        if (log.find("control groups: ") != std::string::npos && log.find(word) != std::string::npos) return true;
        WARN("SKIPPED: no control groups with " << word << " may be used here");
        return false;
    }
    pid_t keeper() { return beside("dcs_slot_keeper"); }
    // The launcher's child of that name.
    pid_t beside(const std::string &name) {
        pid_t found = 0;
        for (const ProcessStat &p : all_processes())
            if (p.parent == launchers.back() && p.state != 'Z' &&
                get_file("/proc/" + std::to_string(p.pid) + "/comm") == name + "\n")
                found = p.pid;
        return found;
    }
    pid_t pid_of(const std::string &grain) {
        const Result<files::PidRecord> r = files::parse_pid(get_file(path(grain) + "/pid"));
        REQUIRE(r);
        return r->pid;
    }
    // Reads a number that a grain wrote to a file.
    pid_t number_in(const std::string &file) {
        REQUIRE(soon([&] { return get_file(file).find('\n') != std::string::npos; }));
        return std::atoi(get_file(file).c_str());
    }
};
inline bool gone(pid_t pid) {
    ProcessStat s;
    return !read_stat(pid, s) || s.state == 'Z' || s.state == 'X';
}
inline bool alive(pid_t pid) { return !gone(pid); }
// Living processes that have this in their environment, or whose command line holds it.
inline int marked(const std::string &word) {
    int n = 0;
    for (const ProcessStat &p : all_processes()) {
        if (p.state == 'Z' || p.state == 'X' || p.pid == ::getpid()) continue;
        const std::string command = get_file("/proc/" + std::to_string(p.pid) + "/cmdline");
        n += command.find(word) != std::string::npos || environment_of(p.pid).find(word) != std::string::npos;
    }
    return n;
}
// A grain gives way to each process; on a busy machine a test would wait long.
inline void hurry(pid_t pid) {
    const sched_param none{};
    ::sched_setscheduler(pid, SCHED_OTHER, &none);
    ::setpriority(PRIO_PROCESS, static_cast<id_t>(pid), 0);
    put_file("/proc/" + std::to_string(pid) + "/autogroup", "0");
}

}  // namespace bench
