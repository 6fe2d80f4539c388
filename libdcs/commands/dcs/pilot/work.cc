// dcs pilot slurm, pbs, condor: keep grain servers as jobs of an engine while grains wait.
// dcs pilot ls, stop: what jobs there are, and their end.
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <ctime>
#include <unistd.h>

#include "commands/dcs/frame/call.h"
#include "commands/dcs/frame/ending_signals.h"
#include "commands/dcs/frame/pool_directory.h"
#include "commands/dcs/frame/table.h"
#include "control.h"
#include "locks/dcs_atoms.h"
#include "base/clock.h"
#include "commands/dcs/query/scheduler.h"

namespace dcs::commands {
namespace {

constexpr double least_limit_s = 60, usual_idle_s = 300, usual_every_s = 10, least_margin_s = 20, most_margin_s = 60;
constexpr int usual_waiting = 4;

std::string command_of(const EngineKind &kind) { return std::string("dcs pilot ") + kind.name; }

PilotOrder order_of(const Call &call) {
    const Arguments &said = call.arguments;
    PilotOrder order;
    order.limit_s = said.seconds("time").value_or(0);
    order.idle_s = said.seconds("idle").value_or(usual_idle_s);
    order.margin_s = said.seconds("margin").value_or(std::clamp(order.limit_s / 4, least_margin_s, most_margin_s));
    order.every_s = said.seconds("every").value_or(usual_every_s);
    order.limits.most = static_cast<std::size_t>(said.number("max").value_or(INT32_MAX));
    order.limits.waiting = static_cast<std::size_t>(said.number("backlog").value_or(usual_waiting));
    order.limits.margin_s = order.margin_s;
    order.options = said.words;
    return order;
}

std::optional<Failure> wrong_with(const EngineKind &kind, const Engine &engine, const PilotOrder &order) {
    const std::string command = command_of(kind);
    if (order.limit_s == 0)
        return usage_failure(command + ": --time is missing: the limit of each job",
                             "for example " + command + " --time 4h");
    if (const std::string own = engine.own_option_in(order.options); !own.empty()) {
        const bool time = own == "-l walltime" || (own == "-t" && &kind == engine_kind("slurm")) || own == "--time";
        return usage_failure(command + ": " + own + " of " + kind.submit + " is set by this command",
                             time ? "give --time before `--`" : "`" + command + " --help` shows how it is used");
    }
    if (order.margin_s * 2 > order.limit_s)
        return usage_failure(command + ": --margin is more than half of --time", "jobs would hardly run grains");
    return std::nullopt;
}

// Two engines at a time would submit two jobs for one pilot.
std::optional<Failure> others_jobs(const EngineKind &kind, const PilotPlace &place) {
    const EngineKind *former = place.engine();
    if (former == nullptr || former == &kind) return std::nullopt;
    const auto jobs = former->make(place.directory())->list(place.prefix());
    if (!jobs && jobs.status().code == Code::not_found) return std::nullopt;  // that engine is not here any more
    if (!jobs) return failure_of(std::string("jobs of pilots in ") + former->title, jobs.status());
    if (jobs->empty()) return std::nullopt;
    return Failure{exits::refused, "refused",
                   std::string(former->title) + " still has " + counted(jobs->size(), "job") + " of this pool's pilots",
                   "`dcs pilot stop` ends them"};
}

// False: a signal that ends this process.
bool pilot_pause(const sigset_t &ending, double seconds) {
    const auto whole = static_cast<std::time_t>(seconds);
    const timespec time = {whole, static_cast<long>((seconds - static_cast<double>(whole)) * 1e9)};
    return ::sigtimedwait(&ending, nullptr, &time) < 0;
}

int work_for_pilots(const Call &call, Engine &engine, const PilotPlace &place, const PilotOrder &order) {
    const sigset_t ending = block_ending_signals();
    PilotControl control(engine, place, order);
    std::string told;
    for (bool first = true;; first = false) {
        if (::access(place.path("stop").c_str(), F_OK) == 0) {
            control.tell("`dcs pilot stop` was called");
            return exits::ok;
        }
        const auto failure = control.step();
        if (failure && first) return call.fail(*failure);
        const std::string text = failure ? failure->message + "; trying again" : "";
        if (failure && text != told) control.tell(text);
        told = text;
        if (first && !failure && !control.has_submitted() && !is_asked_to_end())
            control.tell("no job is needed now; waiting for grains");
        if (pilot_pause(ending, order.every_s)) continue;
        control.tell(
            "ended; jobs go on until no grain comes. The same command takes them over, `dcs pilot stop` ends them");
        return exits::ok;
    }
}

constexpr double usual_patience_s = 180;
constexpr long look_again_ms = 1000;

// nullptr: no job was submitted yet.
std::unique_ptr<Engine> engine_of(const PilotPlace &place) {
    const EngineKind *kind = place.engine();
    return kind == nullptr ? nullptr : kind->make(place.directory());
}

std::string pilot_json(const Pilot &pilot, const EngineJob &job) {
    JsonObject json;
    json.add("pilot", pilot.row.name).add("job", job.id).add("state", job.state).add("node", job.node);
    json.add("reason", job.reason).add("left_s", job.left_s).add("connected", pilot.row.connected);
    return json.add("slots", pilot.row.slots).add("running", pilot.row.running).text();
}

int pilot_ls(const Call &call) {
    const PilotPlace place(call);
    const SeenPilots seen = see_pilots(engine_of(place).get(), place);
    if (seen.failure) return call.fail(*seen.failure);
    Listing list(call, "dcs.pilot.list/1", "pilots");
    Table table{"PILOT", "JOB", "STATE", "NODE", ">LEFT", ">RUNNING", ">SLOTS", "NOTE"};
    std::size_t without = 0;
    for (const Pilot &pilot : seen.pilots) {
        without += pilot.jobs.empty();
        for (const EngineJob &job : pilot.jobs) {
            list.add(pilot.row.name, "", pilot_json(pilot, job));
            const bool silent = !job.waits && !pilot.row.connected;
            table.add({pilot.row.name, job.id, job.state, job.node, seconds_text(job.left_s),
                       std::to_string(pilot.row.running), std::to_string(pilot.row.slots),
                       silent ? "its grain server is not connected" : job.reason});
        }
    }
    return list.end(table, counted(list.size(), "job") + ", " + counted(without, "pilot") + " without a job");
}

// Those that wait are cancelled, the others asked to end; with --now all are cancelled. Number of jobs.
Result<std::size_t> end_jobs(Engine *engine, const PilotPlace &place, bool now) {
    if (engine == nullptr) return std::size_t{0};
    const auto jobs = engine->list(place.prefix());
    if (!jobs) return jobs.status();
    for (const EngineJob &job : *jobs) {
        if (job.over) continue;
        const Status s = job.waits || now ? engine->cancel(job) : engine->ask_to_end(job);
        if (!s && s.code == Code::not_found) return s;  // else it may have ended in between: the list says so
    }
    return jobs->size();
}

int pilot_stop(const Call &call) {
    const PilotPlace place(call);
    if (Status made = place.make(); !made) return call.fail(failure_of("the directory of pilots", made));
    if (Status s = write_file(place.path("stop"), ""); !s) return call.fail(failure_of("pilots were not stopped", s));
    const auto engine = engine_of(place);
    const auto count = end_jobs(engine.get(), place, call.arguments.has("now"));
    const Instant end = boot_clock() + seconds_of(call.arguments.seconds("timeout").value_or(usual_patience_s));
    for (auto left = count;; left = end_jobs(engine.get(), place, call.arguments.has("now"))) {
        if (!left) return call.fail(failure_of("the jobs of pilots", left.status()));
        if (*left == 0) break;
        if (boot_clock() > end)
            return call.fail({exits::timeout, "timeout", counted(*left, "job") + " of pilots still there",
                              "`dcs pilot ls` lists them; --now cancels them"});
        pause_ms(look_again_ms);
    }
    std::printf("%s ended\n", counted(*count, "job").c_str());
    return exits::ok;
}

}  // namespace

int pilot_work(const Call &call, const EngineKind &kind) {
    PilotOrder order = order_of(call);
    const PilotPlace place(call);
    const auto engine = kind.make(place.directory());
    if (const auto wrong = wrong_with(kind, *engine, order)) return call.fail(*wrong);
    const PilotHosts hosts = pilot_hosts();
    if (hosts.failure) return call.fail(*hosts.failure);
    const bool own = Pool(call.directory).maker() == Pool::Maker::dcs_up, root = ::geteuid() == 0;
    if (const auto open = open_to_all(hosts.rows, own, root)) return call.fail(*open);
    order.run_as = root && !own ? "users" : "self";
    order.limits.only_named = !root && !own;
    if (call.arguments.has("max") && order.limits.most > hosts.rows.size())
        std::fprintf(stderr, "dcs: the pool has only %zu hosts for pilots; `dcs up --pilots N` makes it more\n",
                     hosts.rows.size());
    if (Status made = place.make(); !made) return call.fail(failure_of("the directory of pilots", made));
    const auto lock = locks::take_dcs_atom(locks::DcsAtom::pilots, place.path("lock"));
    if (!lock)
        return call.fail(failure_of("pilots of this pool are already kept by another command", lock.status(),
                                    "`dcs pilot ls` shows its jobs, `dcs pilot stop` ends both"));
    (void)::unlink(place.path("stop").c_str());
    if (const Status s = engine->usable(); !s) return call.fail(engine_failure("no job can be submitted", s));
    if (const auto others = others_jobs(kind, place)) return call.fail(*others);
    if (Status s = place.set_engine(kind); !s) return call.fail(failure_of("the directory of pilots", s));
    return work_for_pilots(call, *engine, place, order);
}

OptionTable pilot_options() {
    return {
        {"time", 0, "LIMIT", seconds_from(least_limit_s), "limit of each job (90m, 4h, 1d)", "", Given::always},
        {"max", 0, "N", whole_number(1, INT32_MAX), "jobs at a time; default: as many as the pool has pilots"},
        {"idle", 0, "S", seconds_from(1), "a job ends when no grain came for that long; default 5m"},
        {"backlog", 0, "N", whole_number(1, INT32_MAX), "jobs at a time that wait in the engine's queue; default 4"},
        {"margin", 0, "S", seconds_from(1),
         "time before a job's limit at which its grains take their last checkpoints and leave; default a quarter\n"
         "of the limit, at least 20 s and at most 60 s"},
        {"every", 0, "S", seconds_from(1), "seconds between checks of the pool and the queue; default 10"}};
}

extern const Verb pilot_slurm_verb = {
    .noun = "pilot",
    .name = "slurm",
    .words = "[-- SBATCH-OPTION...]",
    .summary = "run grain servers as jobs of Slurm while grains wait",
    .about =
        R"(Submits jobs to Slurm whose grain servers serve the pool's hosts pilot1, pilot2 and so on, as many as the
waiting grains need. Run it where sbatch works, for example in tmux: while it runs, it submits the next job when one
has reached its limit. It may be killed at any time; the same command takes its jobs over. Grains continue in the next
job from their last checkpoints.

Examples:
  dcs up --local 0 --pilots 20 --pilot-slots 8 --listen 0.0.0.0:7001
  dcs pilot slurm --time 4h --max 20
  dcs pilot slurm --time 4h -- --partition=short --account=p17 --mem-per-cpu=2G
)",
    .options = pilot_options(),
    .notes = R"(Without grains it submits nothing, and cancels jobs that wait. After jobs that ran no grain, or that
Slurm refused, it pauses. See PILOTS.md.
)",
    .run = [](const Call &call) { return pilot_work(call, *engine_kind("slurm")); },
    .formats = false};

extern const Verb pilot_pbs_verb = {
    .noun = "pilot",
    .name = "pbs",
    .words = "[-- QSUB-OPTION...]",
    .summary = "run grain servers as jobs of PBS or Torque while grains wait",
    .about = R"(As `dcs pilot slurm` for OpenPBS, PBS Professional and Torque: by their qsub, qselect, qstat and qdel.
A job asks for one host with as many cores as the pilot has slots, unless an option of yours has select= or nodes=.

Examples:
  dcs pilot pbs --time 4h --max 20
  dcs pilot pbs --time 4h -- -q short -l select=1:ncpus=8:mem=16gb
)",
    .options = pilot_options(),
    .notes = R"(Without grains it submits nothing, and cancels jobs that wait. See PILOTS.md.
)",
    .run = [](const Call &call) { return pilot_work(call, *engine_kind("pbs")); },
    .formats = false};

extern const Verb pilot_condor_verb = {
    .noun = "pilot",
    .name = "condor",
    .words = "[-- CONDOR_SUBMIT-OPTION...]",
    .summary = "run grain servers as jobs of HTCondor while grains wait",
    .about = R"(As `dcs pilot slurm` for HTCondor: by condor_submit, condor_q and condor_rm. Jobs are of the vanilla
universe, and ask for as many CPUs as the pilot has slots.

Examples:
  dcs pilot condor --time 4h --max 20
  dcs pilot condor --time 4h -- -append 'request_memory = 16G'
)",
    .options = pilot_options(),
    .notes = R"(Without grains it submits nothing, and removes jobs that wait. See PILOTS.md.
)",
    .run = [](const Call &call) { return pilot_work(call, *engine_kind("condor")); },
    .formats = false};

extern const Verb pilot_ls_verb = {
    .noun = "pilot",
    .name = "ls",
    .summary = "list the jobs of pilots",
    .about = R"(Lists the batch jobs that run or will run grain servers of this pool, with what the engine and the
scheduler know of them.

Examples:
  dcs pilot ls
  dcs pilot ls -o json | jq -r '.pilots[] | .job + " " + .state'
)",
    .run = pilot_ls};

extern const Verb pilot_stop_verb = {
    .noun = "pilot",
    .name = "stop",
    .summary = "end the jobs of pilots, and what submits them",
    .about = R"(Ends `dcs pilot slurm` (or `pbs`, `condor`), cancels jobs that wait, and asks the others to end: their
grains take last checkpoints and continue in other jobs or hosts. Returns when no job is left.

Examples:
  dcs pilot stop
  dcs pilot stop --now
)",
    .options = {{"now", 0, nullptr, no_value,
                 "cancel running jobs too: their grains lose what follows their last checkpoint"},
                {"timeout", 0, "S", seconds_from(0), "how long it waits for their end; default 3m"}},
    .run = pilot_stop,
    .formats = false};

}  // namespace dcs::commands
