// dcs pilot slurm: keeps grain servers as jobs of Slurm while grains wait.
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <ctime>
#include <unistd.h>

#include "base/text.h"
#include "commands/dcs/frame/call.h"
#include "commands/dcs/frame/ending_signals.h"
#include "commands/dcs/frame/pool_directory.h"
#include "control.h"
#include "locks/dcs_atoms.h"

namespace dcs::commands {
namespace {

constexpr double least_limit_s = 60, usual_idle_s = 300, usual_every_s = 10, least_margin_s = 20, most_margin_s = 60;
constexpr int usual_waiting = 4;
constexpr const char *pilot_help = "`dcs pilot slurm --help` shows how it is used";

// Options of sbatch that this command sets itself.
constexpr const char *own_options[] = {"-t",       "--time",  "-J",       "--job-name", "-o",      "--output",
                                       "-a",       "--array", "--signal", "-N",         "--nodes", "-n",
                                       "--ntasks", "--wrap",  "-W",       "--wait"};

std::string own_option_in(const std::vector<std::string> &options) {
    for (const std::string &word : options)
        for (const char *own : own_options) {
            const std::string_view name = own;
            const bool is_long = name.starts_with("--");
            if (word == name || (is_long ? word.starts_with(own + std::string("=")) : word.starts_with(name))) {
                if (is_long || !word.starts_with("--")) return own;
            }
        }
    return "";
}

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

std::optional<Failure> wrong_with(const PilotOrder &order) {
    if (order.limit_s == 0)
        return usage_failure("dcs pilot slurm: --time is missing: the limit of each job",
                             "for example dcs pilot slurm --time 4h");
    if (const std::string own = own_option_in(order.options); !own.empty())
        return usage_failure("dcs pilot slurm: " + own + " of sbatch is set by this command",
                             own == "-t" || own == "--time" ? "give --time before `--`" : pilot_help);
    if (order.margin_s * 2 > order.limit_s)
        return usage_failure("dcs pilot slurm: --margin is more than half of --time", "jobs would hardly run grains");
    return std::nullopt;
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
        if (first && !failure && !control.has_submitted()) control.tell("no job is needed now; waiting for grains");
        if (pilot_pause(ending, order.every_s)) continue;
        control.tell(
            "ended; jobs go on until no grain comes. The same command takes them over, `dcs pilot stop` ends them");
        return exits::ok;
    }
}

int pilot_slurm(const Call &call) {
    PilotOrder order = order_of(call);
    if (const auto wrong = wrong_with(order)) return call.fail(*wrong);
    const PilotPlace place(call);
    const PilotHosts hosts = pilot_hosts();
    if (hosts.failure) return call.fail(*hosts.failure);
    const bool own = Pool(call.directory).maker() == Pool::Maker::dcs_up, root = ::geteuid() == 0;
    if (const auto open = open_to_all(hosts.rows, own, root)) return call.fail(*open);
    order.run_as = root && !own ? "users" : "self";
    if (call.arguments.has("max") && order.limits.most > hosts.rows.size())
        std::fprintf(stderr, "dcs: the pool has only %zu hosts for pilots; `dcs up --pilots N` makes it more\n",
                     hosts.rows.size());
    if (Status made = place.make(); !made) return call.fail(failure_of("the directory of pilots", made));
    const auto lock = locks::take_dcs_atom(locks::DcsAtom::pilots, place.path("lock"));
    if (!lock) {
        Failure failure = failure_of("another `dcs pilot slurm` is already running for this pool", lock.status());
        failure.hint = "`dcs pilot ls` shows its jobs, `dcs pilot stop` ends both";
        return call.fail(failure);
    }
    (void)::unlink(place.path("stop").c_str());
    const auto engine = slurm();
    if (const Status s = engine->usable(); !s) return call.fail(failure_of("no job can be submitted", s));
    return work_for_pilots(call, *engine, place, order);
}

}  // namespace

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
    .options =
        {{"time", 0, "LIMIT", seconds_from(least_limit_s), "limit of each job (90m, 4h, 1d)", "", Given::always},
         {"max", 0, "N", whole_number(1, INT32_MAX), "jobs at a time; default: as many as the pool has pilots"},
         {"idle", 0, "S", seconds_from(1), "a job ends when no grain came for that long; default 5m"},
         {"backlog", 0, "N", whole_number(1, INT32_MAX), "jobs at a time that wait in Slurm's queue; default 4"},
         {"margin", 0, "S", seconds_from(1),
          "time before a job's limit at which its grains take their last checkpoints and leave; default a quarter\n"
          "of the limit, at least 20 s and at most 60 s"},
         {"every", 0, "S", seconds_from(1), "seconds between checks of the pool and the queue; default 10"}},
    .notes = R"(Without grains it submits nothing, and cancels jobs that wait. After jobs that ran no grain, or that
Slurm refused, it pauses. See PILOTS.md.
)",
    .run = pilot_slurm,
    .formats = false};

}  // namespace dcs::commands
