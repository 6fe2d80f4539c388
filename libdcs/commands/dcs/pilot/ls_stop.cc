// dcs pilot ls, stop.
#include <cstdio>

#include "base/clock.h"
#include "commands/dcs/frame/call.h"
#include "commands/dcs/frame/json.h"
#include "commands/dcs/frame/pool_directory.h"
#include "commands/dcs/frame/table.h"
#include "commands/dcs/query/scheduler.h"
#include "control.h"

namespace dcs::commands {
namespace {

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
    std::vector<std::string> json;
    Table table{"PILOT", "JOB", "STATE", "NODE", ">LEFT", ">RUNNING", ">SLOTS", "NOTE"};
    std::size_t without = 0;
    for (const Pilot &pilot : seen.pilots) {
        without += pilot.jobs.empty();
        for (const EngineJob &job : pilot.jobs) {
            json.push_back(pilot_json(pilot, job));
            const bool silent = !job.waits && !pilot.row.connected;
            table.add({pilot.row.name, job.id, job.state, job.node, seconds_text(job.left_s),
                       std::to_string(pilot.row.running), std::to_string(pilot.row.slots),
                       silent ? "its grain server is not connected" : job.reason});
            if (call.format == Format::name) std::printf("%s\n", pilot.row.name.c_str());
        }
    }
    if (call.format == Format::json) print_document("dcs.pilot.list/1", "pilots", json_array(json));
    if (call.format != Format::table) return exits::ok;
    if (!json.empty()) std::printf("%s\n", table.text().c_str());
    std::printf("%s, %s without a job\n", counted(static_cast<std::int64_t>(json.size()), "job").c_str(),
                counted(static_cast<std::int64_t>(without), "pilot").c_str());
    return exits::ok;
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
            return call.fail({exits::timeout, "timeout",
                              counted(static_cast<std::int64_t>(*left), "job") + " of pilots still there",
                              "`dcs pilot ls` lists them; --now cancels them"});
        pause_ms(look_again_ms);
    }
    std::printf("%s ended\n", counted(static_cast<std::int64_t>(*count), "job").c_str());
    return exits::ok;
}

}  // namespace

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
    .options =
        {{"now", 0, nullptr, {}, "cancel running jobs too: their grains lose what follows their last checkpoint"},
         {"timeout", 0, "S", seconds_from(0), "how long it waits for their end; default 3m"}},
    .run = pilot_stop,
    .formats = false};

}  // namespace dcs::commands
