// dcs up: a private pool of this user on this host.
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <sched.h>
#include <unistd.h>

#include "commands/dcs/query/scheduler.h"
#include "commands/dcs/query/why_waiting.h"
#include "base/clock.h"
#include "base/files.h"
#include "base/text.h"
#include "client/pool_path.h"
#include "commands/dcs/frame/call.h"
#include "commands/dcs/frame/pool_directory.h"
#include "commands/dcs/frame/start_hint.h"
#include "start_daemon.h"
#include "start_pool.h"
#include "base/resources.h"
#include "stop_daemons.h"
#include "commands/dcs/frame/table.h"

namespace dcs::commands {
namespace {

constexpr int shrunk_stop_s = 5, shrunk_launcher_stop_s = 10, changed_stop_s = 20;
constexpr int many_slots_per_core = 16;
constexpr int call_in_patience_s = 10;  // servers call in within a moment; only a note if they do not

struct Wanted {
    PoolNumbers numbers;
    bool changed = false;  // other than recorded, or nothing was recorded
    int servers_before = 0;
    std::string restarts;  // the option that changes, which the scheduler learns when it is started; empty: none
};

struct Outcome {
    std::vector<std::string> started, stopped;
    std::vector<std::string> gone;       // hosts that the pool no longer has
    std::vector<std::string> unchanged;  // servers that run with another courtesy
    bool told_to_reread = false;
    bool new_store = false;
    int active = 0, slots = 0;  // of the servers, by `dcs host set` too
};

// That this process may use.
int cores_of_this_host() {
    cpu_set_t cores;
    if (::sched_getaffinity(0, sizeof cores, &cores) != 0) return 1;
    return std::clamp(CPU_COUNT(&cores), 1, most_slots);
}

Result<Wanted> wanted_numbers(const Call &call, const Pool &pool) {
    const auto recorded = pool.numbers();
    if (!recorded && recorded.status().code != Code::not_found) return fail(Code::io_error, recorded.status().text);
    Wanted wanted;
    const Arguments &said = call.arguments;
    PoolNumbers &numbers = wanted.numbers;
    if (recorded) numbers = *recorded;
    else if (!said.has("local") && pool.maker() == Pool::Maker::none)
        numbers = {.servers = 1, .slots = cores_of_this_host()};
    else if (!said.has("local"))  // it would stop servers that there are
        return fail(Code::invalid, "--local N is missing: how many servers the pool in " + pool.directory() +
                                       " has was not recorded, because the `dcs up` that made it was interrupted");
    numbers.servers = static_cast<int>(said.number("local").value_or(numbers.servers));
    numbers.slots = static_cast<int>(said.number("slots").value_or(numbers.slots));
    numbers.interval_s = said.seconds("interval").value_or(numbers.interval_s);
    numbers.pilots = static_cast<int>(said.number("pilots").value_or(numbers.pilots));
    numbers.pilot_slots = static_cast<int>(said.number("pilot-slots").value_or(numbers.pilot_slots));
    numbers.listen = said.value("listen").value_or(numbers.listen);
    if (const auto resources = said.value("resources")) {
        const auto offers = offers_of_this_host(*resources == "auto" ? "" : *resources);
        if (!offers) return fail(Code::invalid, "--resources: " + offers.status().text);
        numbers.resources = resource_text(*offers);
        if (numbers.resources.size() > most_resources)
            return fail(Code::limit, "--resources is longer than " + std::to_string(most_resources) + " bytes");
    }
    if (numbers.servers + numbers.pilots == 0)
        return fail(Code::invalid, "--local 0 needs --pilots N: without hosts the pool runs no grain");
    if (numbers.pilots > 0 && numbers.listen.empty())
        return fail(Code::invalid, "--pilots needs --listen ADDRESS:PORT, where jobs on other hosts reach the pool");
    numbers.courtesy = said.value("courtesy").value_or(numbers.courtesy);
    numbers.mirror = said.value("mirror").value_or(numbers.mirror);
    if (recorded) wanted.servers_before = recorded->servers;
    wanted.changed = !recorded || !(*recorded == wanted.numbers);
    if (recorded && recorded->mirror != wanted.numbers.mirror) wanted.restarts = "--mirror " + wanted.numbers.mirror;
    if (recorded && recorded->listen != wanted.numbers.listen) wanted.restarts = "--listen " + wanted.numbers.listen;
    return wanted;
}

Status make_layout(const Pool &pool, const PoolNumbers &numbers) {
    for (const char *name : {"scheduler", "backup", "servers"})
        if (Status made = make_directories(pool.path(name)); !made) return made;
    for (int i = 1; i <= numbers.servers; ++i)
        if (Status made = make_directories(pool.server_directory("local" + std::to_string(i))); !made) return made;
    return Status::ok();
}

void tell_to_reread(const Daemon &scheduler) {
    Process process(scheduler.pid);
    if (process.good() && has_open(scheduler.pid, scheduler.lock)) process.signal(SIGHUP);
}

// The host table first, the file `pool` last: after an interruption between them the next run finds the numbers
// changed again and repeats both.
Status write_numbers(const Pool &pool, const Wanted &wanted, Outcome &outcome) {
    const std::string hosts = pool.path("scheduler/hosts");
    const std::string table = host_table_text(wanted.numbers, binary_class_of_this_host());
    const auto before = read_file(hosts, 16u << 20);
    if (!wanted.changed && before && *before == table) return Status::ok();
    if (Status written = write_file(hosts, table); !written) return written;
    const Daemon scheduler = pool.scheduler();
    if (stays_up(scheduler)) {
        tell_to_reread(pool.scheduler());
        outcome.told_to_reread = true;
    }
    return write_file(pool.path("pool"), pool_text(wanted.numbers));
}

Status stop_surplus(const Pool &pool, const PoolNumbers &numbers, Outcome &outcome) {
    std::vector<std::string> names;
    std::vector<Daemon> servers, launchers;
    for (const std::string &name : pool.server_names()) {
        const auto number = name.rfind("local", 0) == 0 ? number_of(name.substr(5), 1, INT32_MAX) : std::nullopt;
        if (number && *number <= numbers.servers) continue;
        const Daemon server = pool.server(name), launcher = pool.launcher(name);
        if (!server.up && !launcher.up) continue;
        names.push_back(name);
        servers.push_back(server);
        launchers.push_back(launcher);
    }
    if (names.empty()) return Status::ok();
    std::string left;
    for (const std::string &who : stop_daemons(servers, shrunk_stop_s)) left += " " + who;
    for (const std::string &who : stop_daemons(launchers, shrunk_launcher_stop_s)) left += " " + who;
    if (end_grains(pool, names) < 0) left += " grains";
    if (!left.empty()) return fail(Code::internal, "could not stop:" + left);
    outcome.stopped = names;
    return Status::ok();
}

// Until every server has called in, so that the pool has all its slots when `dcs up` returns.
Status wait_for_servers(const PoolNumbers &numbers, Outcome &outcome) {
    const Instant deadline = boot_clock() + seconds(call_in_patience_s);
    Info info;
    Status asked;
    do {
        asked = info.ask(wire::QueryType::system);
        outcome.active = asked ? info.system.hosts_active : 0;
        if (!asked) this_pool().waits = nullptr;  // it has been said
        if (outcome.active < numbers.servers) pause_ms(20);
    } while (outcome.active < numbers.servers && boot_clock() <= deadline);
    if (asked) asked = info.ask(wire::QueryType::hosts);
    for (const wire::HostRow &row : info.hosts)
        if (row.name.starts_with("local")) outcome.slots += row.slots;
    return asked;
}

// "2 grain servers of 1 slot"
std::string servers_text(const PoolNumbers &numbers, const Outcome &outcome) {
    const std::string servers = counted(numbers.servers, "grain server");
    return outcome.slots == numbers.servers * numbers.slots
               ? servers + " of " + counted(numbers.slots, "slot")
               : servers + " with " + counted(outcome.slots, "slot") + " in all (`dcs host set`)";
}

void print_result(const Call &call, const Pool &pool, const PoolNumbers &numbers, const Outcome &outcome) {
    if (call.format == Format::name) {
        std::printf("%s\n", pool.directory().c_str());
        return;
    }
    if (call.format == Format::json) {
        JsonObject json("dcs.up/1");
        json.add("dir", pool.directory())
            .add("servers", numbers.servers)
            .add("slots", numbers.slots)
            .add("pilots", numbers.pilots)
            .add("interval_s", numbers.interval_s)
            .add("hosts_active", outcome.active)
            .add("new", outcome.new_store);
        json.add_list("started", outcome.started, json_string).add_list("stopped", outcome.stopped, json_string);
        std::printf("%s\n", json.text().c_str());
        return;
    }
    std::printf("%s in %s serves: a scheduler, a backup, and %s.\n", outcome.new_store ? "A new pool" : "The pool",
                pool.directory().c_str(), servers_text(numbers, outcome).c_str());
    if (numbers.pilots > 0)
        std::printf("%s of %s wait for batch jobs: `dcs pilot slurm --time 4h`, pbs or condor submits these.\n",
                    counted(numbers.pilots, "pilot").c_str(), counted(numbers.pilot_slots, "slot").c_str());
    if (outcome.started.empty())
        std::printf(outcome.told_to_reread ? "All daemons were running already; the new numbers apply from now on.\n"
                                           : "Everything was running already.\n");
    else std::printf("Started: %s.\n", some_of(outcome.started).c_str());
    if (!outcome.gone.empty())
        std::printf("No longer in the pool: %s. Grains that are there move to the others.\n",
                    some_of(outcome.gone).c_str());
    if (!outcome.unchanged.empty())
        std::printf("%s: courtesy %s applies when started again: `dcs down`, then `dcs up`.\n",
                    some_of(outcome.unchanged).c_str(), numbers.courtesy.c_str());
    if (const std::string page = pool.page_url(); !page.empty()) std::printf("Its page: %s\n", page.c_str());
    const auto own = client::own_pool_directory();
    const bool found = own && *own == pool.directory();
    std::printf("\nUse it:\n%s  dcs status\n  seq 3 | dcs map -- printf 'grain %%s\\n' {}\n  dcs down\n",
                found ? "" : ("  export DCS_DIR=" + shell_word(pool.directory()) + "\n").c_str());
}

bool runs_with_another_courtesy(const Daemon &server, const PoolNumbers &numbers) {
    const auto record = stays_up(server) ? daemon_record(server.directory) : fail(Code::not_found, "");
    return record && std::any_of(record->settings.begin(), record->settings.end(),
                                 [&](const Setting &s) { return s.name == "courtesy" && s.value != numbers.courtesy; });
}

// Before they are started, which takes its time.
void say_if_many(const Wanted &wanted) {
    const int cores = cores_of_this_host(), slots = wanted.numbers.servers * wanted.numbers.slots;
    if (wanted.changed && slots / cores >= many_slots_per_core)
        std::fprintf(
            stderr,
            "dcs: note: %s of %s run up to %d grains at a time on %s; `dcs up --local N --slots K` changes that\n",
            counted(wanted.numbers.servers, "grain server").c_str(), counted(wanted.numbers.slots, "slot").c_str(),
            slots, counted(cores, "core").c_str());
}

Status bring_up(const Call &call, const Pool &pool, PoolNumbers &numbers, Outcome &outcome) {
    auto wanted = wanted_numbers(call, pool);
    if (!wanted) return wanted.status();
    numbers = wanted->numbers;
    for (int i = numbers.servers + 1; i <= wanted->servers_before; ++i)
        outcome.gone.push_back("local" + std::to_string(i));
    if (Status made = make_layout(pool, numbers); !made) return made;
    if (!wanted->restarts.empty() && !stop_daemons({pool.scheduler()}, changed_stop_s).empty())
        return fail(Code::internal, "could not stop the scheduler, to restart it with " + wanted->restarts);
    if (Status written = write_numbers(pool, *wanted, outcome); !written) return written;
    if (Status stopped = stop_surplus(pool, numbers, outcome); !stopped) return stopped;
    for (int i = 1; i <= numbers.servers; ++i)
        if (const Daemon server = pool.server("local" + std::to_string(i)); runs_with_another_courtesy(server, numbers))
            outcome.unchanged.push_back(server.name);
    say_if_many(*wanted);
    outcome.new_store = ::access(pool.path("scheduler/state/format").c_str(), F_OK) != 0;
    if (Status started = start_missing(pool, numbers, outcome.started); !started) return started;
    return call.arguments.has("page") ? start_page(pool, outcome.started) : Status::ok();
}

// To a person; what a script reads does not depend on what else runs.
void say_if_busy(const PoolNumbers &numbers) {
    double load = 0;
    const bool person = ::isatty(STDERR_FILENO) == 1 && ::getloadavg(&load, 1) == 1;
    if (!person || numbers.courtesy == "none" || load < 1.5 * cores_of_this_host()) return;
    std::fprintf(stderr,
                 "dcs: note: other programs keep this host busy (load %.1f), and grains wait for them; "
                 "after `dcs down`, `dcs up --courtesy none` gives grains the same priority\n",
                 load);
}

constexpr const char *usage_hint = "for example dcs up --local 2; `dcs up --help` lists the options";
constexpr const char *another_directory = "name another directory by --dir DIR";

// Root operates this host's pool by commands without --dir, which a private pool of root's would take from then on.
bool hides_the_host_pool(const Pool &pool) {
    return ::geteuid() == 0 && pool.maker() == Pool::Maker::none && !other_pool(pool.directory()).empty();
}

// A file system without room ends a start in many ways.
int failed(const Call &call, const Status &why, const std::string &hint) {
    const std::string full = full_disk_text(call.directory);
    if (full.empty()) return call.fail(failure_of("", why, hint));
    return call.fail(
        failure_of("", fail(Code::no_space, why.text + "\n  " + full),
                   "make room there (a new pool needs 16 MiB and 200 inodes)" + (hint.empty() ? "" : "; " + hint)));
}

int up(const Call &call) {
    const Pool pool(call.directory);
    if (hides_the_host_pool(pool))
        return call.fail({exits::refused, "refused",
                          "this host has a pool, which root's commands would no longer reach: they use a pool in " +
                              pool.directory() + " if there is one",
                          "`dcs status` shows the pool of this host; a pool for trying out is made by `dcs up --dir "
                          "DIR`, or by another login"});
    // A directory of another user is left alone, and wrong numbers leave no directory behind.
    const bool exists = ::access(pool.directory().c_str(), F_OK) == 0;
    if (Status ours = exists ? only_a_pool(pool) : is_ours(pool.directory()); !ours && ours.code != Code::not_found)
        return call.fail(failure_of("", ours, another_directory));
    if (const auto wanted = wanted_numbers(call, pool); !wanted) {
        const bool usage = wanted.status().code == Code::invalid;
        Failure failure = failure_of("", wanted.status(),
                                     usage    ? usage_hint
                                     : exists ? "correct that file"
                                              : another_directory);
        if (usage) failure.code = "usage";
        return call.fail(failure);
    }
    if (Status made = make_directories(pool.directory()); !made) return failed(call, made, another_directory);
    if (Status ours = only_a_pool(pool); !ours) return call.fail(failure_of("", ours, another_directory));
    const auto lock = take_work_lock(pool);
    if (!lock) return failed(call, fail(lock.status().code, "dcs up: " + lock.status().text), "");
    if (only_the_copy_is_left(pool))
        return call.fail(
            {exits::refused, "refused",
             "the pool's store, " + pool.path("scheduler/state") + ", is missing; the backup has a copy of it",
             "`dcs backup promote` makes that copy the store; to begin with an empty one, run `dcs down` and "
             "remove " +
                 pool.path("scheduler") + " and " + pool.path("backup/mirror")});
    PoolNumbers numbers;
    Outcome outcome;
    if (Status done = bring_up(call, pool, numbers, outcome); !done)
        return done.code == Code::unreachable
                   ? call.fail(failure_of("", done))
                   : failed(call, done,
                            "daemons that started keep running; `dcs up` tries again, `dcs down` stops them all");
    if (Status asked = wait_for_servers(numbers, outcome); !asked) return call.fail(call_failure("", asked));
    if (outcome.active < numbers.servers)
        std::fprintf(stderr, "dcs: only %d of %d grain servers have called in so far; `dcs host ls` shows them\n",
                     outcome.active, numbers.servers);
    say_if_busy(numbers);
    if (const auto row = ask_disk_problem())
        std::fprintf(stderr, "dcs: warning: the scheduler has little room: %s: %s (`dcs doctor`)\n",
                     printable(row->problem).c_str(), row->affects.c_str());
    if (const std::string other = other_pool(pool.directory()); !other.empty() && !outcome.started.empty())
        std::fprintf(stderr, "dcs: note: your commands use this pool now; %s\n", other.c_str());
    if (::geteuid() == 0)
        std::fprintf(stderr, "dcs: warning: started by root, so the grains of this pool run as root\n");
    print_result(call, pool, numbers, outcome);
    resume_jobs(pool);
    return exits::ok;
}

}  // namespace

extern const Verb up_verb = {
    .noun = "",
    .name = "up",
    .summary = "start a private pool on this host, or restart its dead daemons",
    .about = R"(Starts a private pool of this user on this host: a scheduler, a passive backup and grain
servers. Needs no root and no configuration, and returns when the pool serves.

Examples:
  dcs up                               one grain server with a slot for each core; or restart dead daemons
  dcs up --local 2                     two grain servers with one slot each
  dcs up --local 0 --pilots 20 --pilot-slots 8 --listen 0.0.0.0:7001    20 batch jobs of 8 cores at most
  dcs up --local 4 --dir /scratch/p    in that directory; other commands find it by DCS_DIR=/scratch/p
)",
    .options =
        {{"local", 0, "N", whole_number(0, most_servers),
          "number of grain servers on this host; default 1, or as many as the pool has"},
         {"slots", 0, "K", whole_number(1, most_slots),
          "grains at a time on each; default: as the pool has; of a new one 1, without --local one for each core"},
         {"interval", 0, "S", seconds_from(least_interval_s, most_interval_s),
          "seconds between a server's reports; default 10. A server that is silent for 3 S is late,\n"
          "for 6 S dead: its grains move. One that was killed and is not started again is dead\n"
          "after S, at least 10 s"},
         {"resources", 0, "LIST", some_text,
          "what local1 offers by name, such as gpu=[0,1],scratch_gb=200; auto (the default): the GPUs of this\n"
          "host. docs/RESOURCES.md has the form"},
         {"courtesy", 0, "C", one_of(courtesies),
          "priority (the default): grains have the lowest priority, and wait while other programs use all\n"
          "processors. none: they have the priority of other programs. watch: the lowest, and the host gives\n"
          "them back when other work keeps the processors busy or memory runs out, and takes none until it is\n"
          "calm again. Applies to servers that are started from now on; `dcs config show local1` shows it"},
         {"mirror", 0, "MODE", one_of(mirror_modes),
          "whether the backup keeps a running copy of the scheduler's store, in DIR/backup/mirror: off (the\n"
          "default); lagging: the copy may be behind; sync: the scheduler acknowledges only what is in the copy,\n"
          "and does not answer while the backup is down. A change restarts the scheduler; grains keep running"},
         {"pilots", 0, "N", whole_number(0, most_servers),
          "also N hosts, pilot1 to pilotN of the class pilots, whose grain servers are batch jobs: `dcs pilot slurm`\n"
          "submits them"},
         {"pilot-slots", 0, "K", whole_number(1, most_slots), "grains at a time on each of these; default 1"},
         {"listen", 0, "ADDRESS:PORT", some_text,
          "where they reach the scheduler, by TLS; ADDRESS is this host's, or 0.0.0.0 for all that it has"},
         {"page", 0, nullptr, no_value, "start `dcs page` too: the pool in a browser; `dcs down` ends it"},
         {"dir", 0, "DIR", some_text,
          "the pool's directory; default $DCS_DIR, else $XDG_STATE_HOME/dcs, else ~/.local/state/dcs"}},
    .notes = R"(Run again on the same directory, it starts daemons that have died and changes no others. New numbers
apply to the running pool; with fewer servers the surplus ones are stopped and their grains move
to the others. If root starts the pool, grains run as root. `dcs up` does not change a pool that it did not
create: its host table belongs to its administrator.
)",
    .run = up,
    .formats = false};

}  // namespace dcs::commands
