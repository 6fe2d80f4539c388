#include "control.h"

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"
#include "commands/dcs/frame/ending_signals.h"
#include "commands/dcs/frame/pool_directory.h"
#include "commands/dcs/frame/table.h"
#include "commands/dcs/pool/start_daemon.h"

namespace dcs::commands {
namespace {

std::string whole(double seconds) { return std::to_string(static_cast<long>(seconds)); }

// What a job executes. /bin/sh goes at once: the engine's signals reach `dcs pilot serve`.
std::string script_of(const PilotPlace &place, const std::string &host, const std::string &scheduler,
                      const PilotOrder &order, const std::vector<std::string> &users) {
    std::vector<std::string> line = {own_folder() + "/dcs", "pilot", "serve", host};
    const std::pair<const char *, std::string> options[] = {{"--scheduler", scheduler},
                                                            {"--pki", place.path(host) + "/pki"},
                                                            {"--limit", whole(order.limit_s)},
                                                            {"--margin", whole(order.margin_s)},
                                                            {"--idle", whole(order.idle_s)},
                                                            {"--run-as", order.run_as},
                                                            {"--users", users.empty() ? "all" : joined(users, ",")}};
    for (const auto &[option, value] : options) line.insert(line.end(), {option, value});
    return "#!/bin/sh\nexec " + shell_line(line) + " >>" + shell_word(place.path(host) + "/log") + " 2>&1\n";
}

// What its jobs said, and what the engine said of them.
std::string logs_of(const std::string &directory) {
    std::string logs = directory + "/log";
    for (const char *end : {".pbs", ".condor"})
        if (::access((directory + "/log" + end).c_str(), F_OK) == 0) logs += " and " + directory + "/log" + end;
    return logs;
}

}  // namespace

Failure engine_failure(const std::string &what, const Status &said) {
    Failure failure = failure_of(what, said);
    if (failure.hint.empty())
        failure.hint = "the engine's own command said so: run this where its commands work, under the same account";
    return failure;
}

std::optional<Failure> open_to_all(const std::vector<wire::HostRow> &pilots, bool own_pool, bool root) {
    const auto open = std::find_if(pilots.begin(), pilots.end(), [](const auto &row) { return row.users.empty(); });
    if (own_pool || root || open == pilots.end()) return std::nullopt;
    return Failure{exits::refused, "refused",
                   "grains of all users of the pool would run under your account on " + open->name,
                   "add users=LOGIN,.. to its line of the host table, whose grains may do all that you may, and run "
                   "dcs reload; pilots that root submits give each user's grains an account of their own"};
}

SeenPilots see_pilots(Engine *engine, const PilotPlace &place) {
    SeenPilots seen;
    PilotHosts hosts = pilot_hosts();
    if ((seen.failure = hosts.failure)) return seen;
    Result<std::vector<EngineJob>> jobs = std::vector<EngineJob>{};
    if (engine != nullptr) jobs = engine->list(place.prefix());
    if (!jobs) {
        seen.failure = engine_failure("the jobs of pilots", jobs.status());
        return seen;
    }
    seen.ready = hosts.ready;
    for (wire::HostRow &row : hosts.rows) seen.pilots.push_back({std::move(row), {}});
    for (EngineJob &job : *jobs) {
        const auto of = [&](const Pilot &p) { return place.job_name(p.row.name) == job.name; };
        auto found = std::find_if(seen.pilots.begin(), seen.pilots.end(), of);
        if (found == seen.pilots.end()) {
            Pilot gone;
            gone.row.name = job.name.substr(place.prefix().size());
            found = seen.pilots.insert(seen.pilots.end(), std::move(gone));
        }
        found->jobs.push_back(std::move(job));
    }
    return seen;
}

void PilotControl::tell(const std::string &text) const {
    std::printf("%s %s\n", moment_text("%H:%M:%S", std::time(nullptr)).c_str(), printable(text).c_str());
    (void)std::fflush(stdout);
}

// What lasts for many looks is said when it begins.
void PilotControl::tell_once(const std::string &text) {
    if (text != told_ && !text.empty()) tell(text);
    told_ = text;
}

// A line that was added, or has lost its users, since this command began.
void PilotControl::tell_of_open(const SeenPilots &seen) {
    std::set<std::string> open;
    for (const Pilot &pilot : seen.pilots)
        if (order_.limits.only_named && pilot.jobs.empty() && pilot.row.users.empty()) open.insert(pilot.row.name);
    for (const std::string &host : open)
        if (told_open_.count(host) == 0)
            tell(host +
                 ": no job is submitted, because grains of all users of the pool would run under your account: "
                 "add users=LOGIN,.. to its line of the host table and run dcs reload");
    told_open_ = std::move(open);
}

Status PilotControl::submit(const Pilot &pilot) {
    const std::string &host = pilot.row.name;
    const auto joined = join_pilot(place_, host);
    if (!joined) return joined.status();
    JobOrder order;
    order.name = place_.job_name(host);
    order.script = place_.path(host) + "/job";
    order.log = place_.path(host) + "/log";
    order.limit_s = order_.limit_s;
    order.margin_s = order_.margin_s;
    order.cores = std::max(1, pilot.row.cores > 0 ? pilot.row.cores : pilot.row.slots);
    order.options = order_.options;
    if (Status s = write_file(order.script, script_of(place_, host, *joined, order_, pilot.row.users)); !s) return s;
    const auto id = engine_.submit(order);
    if (!id) return id.status();
    tell(host + ": submitted job " + *id);
    submitted_ = true;
    cancelled_.erase(host);
    fruitless_.submitted(host, pilot.row.launched);
    return Status::ok();
}

std::optional<Failure> PilotControl::step() {
    const SeenPilots seen = see_pilots(&engine_, place_);
    if (is_asked_to_end()) return {};  // while the engine did not answer, say
    if (seen.failure) return seen.failure;
    const Instant now = boot_clock();
    for (const Pilot &pilot : seen.pilots)
        if (fruitless_.look(pilot, cancelled_.count(pilot.row.name) != 0, now))
            tell(pilot.row.name + ": its job has ended without having run a grain; see " +
                 logs_of(place_.path(pilot.row.name)));
    tell_of_open(seen);
    const PilotPlan plan = plan_pilots(seen.pilots, seen.ready, order_.limits);
    for (const EngineJob &job : plan.cancel) {
        const std::string host = job.name.substr(place_.prefix().size());
        cancelled_.insert(host);
        if (const Status s = engine_.cancel(job); !s) tell(host + ": job " + job.id + " was not cancelled: " + s.text);
        else tell(host + ": cancelled job " + job.id + ", because no grain waits");
    }
    if (fruitless_.pauses(now) && !plan.submit.empty()) {
        tell_once(counted(seen.ready, "grain") + " wait, but no job is submitted for " +
                  seconds_text((fruitless_.until() - now).seconds()) +
                  ": pilots ran no grain. `dcs grain explain SES:G` says what a grain waits for");
        return {};
    }
    told_.clear();
    for (const std::size_t i : plan.submit) {
        if (is_asked_to_end()) return {};
        if (const Status s = submit(seen.pilots[i]); !s) {
            if (is_asked_to_end()) return {};  // which ended sbatch: what it has submitted is found again
            fruitless_.refused(now);
            return failure_of(seen.pilots[i].row.name + ": no job was submitted", s);
        }
    }
    return {};
}

}  // namespace dcs::commands
