// dcs pilot slurm, pbs, condor: keep grain servers as jobs of an engine while grains wait.
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <ctime>
#include <unistd.h>

#include "base/text.h"
#include "commands/dcs/frame/call.h"
#include "commands/dcs/frame/ending_signals.h"
#include "commands/dcs/frame/pool_directory.h"
#include "commands/dcs/frame/table.h"
#include "control.h"
#include "locks/dcs_atoms.h"

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
                   std::string(former->title) + " still has " +
                       counted(static_cast<std::int64_t>(jobs->size()), "job") + " of this pool's pilots",
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
    if (!lock) {
        Failure failure = failure_of("pilots of this pool are already kept by another command", lock.status());
        failure.hint = "`dcs pilot ls` shows its jobs, `dcs pilot stop` ends both";
        return call.fail(failure);
    }
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

}  // namespace dcs::commands
