#include "grainserver/launcher/start_grain.h"

#include <cerrno>
#include <cstring>
#include <optional>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

#include "base/failpoint.h"
#include "base/planted.h"
#include "grainserver/files/grain_record.h"
#include "grainserver/files/launcher_calls.h"
#include "base/files.h"
#include "base/require.h"
#include "process/cpus.h"

namespace dcs::launcher {
namespace {
locks::Place slots_file(const std::string &directory) {
    locks::Place place;
    place.path = directory + "/" + files::slots_file;
    place.atom = locks::Atom{"grains", "", "any"};  // a host may be renamed while they run
    return place;
}

// For listings of the slots: the grain works in it, and the launcher supervises.
void name_owner(locks::Slots &slot, pid_t pid, const std::string &dir, const std::string &program) {
    DCS_REQUIRE(pid > 1 && slot.held(), "a slot is held by a running grain");
    const locks::World &world = locks::this_world();
    locks::Owner owner;
    if (const auto process = identify(pid)) owner.process = *process;
    owner.supervisor = own_identity();
    owner.boot = world.boot;
    owner.pid_namespace = world.pid_namespace;
    owner.host = world.host;
    owner.command = program.substr(program.rfind('/') + 1);
    slot.set_owner(world, owner, "grain " + dir);
}

// A server refuses to offer such ones; the host table is written elsewhere.
std::string wrong_with_cpus(const Indices &indices) {
    const auto its = indices.find(cpu_resource);
    const std::string lacks = its == indices.end() ? "" : lacks_cpus(its->second);
    return lacks.empty() ? "" : lacks + ": correct `" + cpu_resource + "` in the host table's `resources=`";
}

// A child that could not become the grain is collected.
void collect(pid_t pid) {
    while (pid > 1 && ::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {}
}

// Without a slot: only proves that it could run.
StartOutcome run(const Place &place, const std::string &dir, const files::LaunchRecord &launch, locks::Slots *slot,
                 int slot_limit, const std::string &leaf, const Indices &indices) {
    std::vector<std::int32_t> chosen;
    for (const auto &[name, some] : indices) chosen.insert(chosen.end(), some.begin(), some.end());
    const starter::Answer answer = slot != nullptr
                                       ? place.starter->start_grain(dir, leaf, slot_limit, std::move(chosen))
                                       : place.starter->prove_grain(dir);
    if (!answer.status) {
        collect(static_cast<pid_t>(answer.value));
        return answer.failure ? told(*answer.failure, launch) : failed(answer.status.code, answer.status.text);
    }
    StartOutcome outcome;
    outcome.kind = StartOutcome::Kind::started;
    if (slot == nullptr) return outcome;
    failpoint("launcher.start.after_exec");
    outcome.pid = static_cast<pid_t>(answer.value);
    outcome.low_priority = (answer.bits & starter::is_lowered) != 0;
    name_owner(*slot, outcome.pid, dir, launch.program);
    outcome.limits = launch.limits;
    outcome.account = launch.account;
    return outcome;
}

bool has_run(int grain) {
    if (planted("launcher.starts_again")) return false;
    return files::has_record(grain, files::pid_name) || files::has_record(grain, files::exit_name);
}

// Finds the grain to run. Otherwise `outcome` gives the reason, or states that it is running or has ended.
std::optional<files::LaunchRecord> find(const Place &place, const std::string &dir, StartOutcome &outcome) {
    Result<Fd> grain = open_directory(place.grains, dir);
    if (!grain) {
        outcome = failed(Code::io_error, "directory of the grain: " + grain.status().text);
        return {};
    }
    if (has_run(grain->get())) {
        outcome.kind = StartOutcome::Kind::have_it;
        return {};
    }
    const Result<std::string> bytes = read_file(grain->get(), files::launch_name, files::record_bytes_max);
    Result<files::LaunchRecord> launch =
        bytes ? files::unpack_launch(*bytes) : Result<files::LaunchRecord>(bytes.status());
    if (launch) return std::move(*launch);
    outcome = failed(Code::io_error, launch.status().text);
    return {};
}
}  // namespace

StartOutcome prove_grain(const Place &place, const std::string &dir) {
    StartOutcome outcome;
    const std::optional<files::LaunchRecord> launch = find(place, dir, outcome);
    return launch ? run(place, dir, *launch, nullptr, 1, "", {}) : std::move(outcome);
}

bool was_started(const Place &place, const std::string &dir) {
    const Result<Fd> grain = open_directory(place.grains, dir);
    return grain && has_run(grain->get());
}

StartOutcome start_grain(const Place &place, const std::string &dir, int slot_limit, HeldSlot &held,
                         const std::vector<const Indices *> &taken) {
    StartOutcome outcome;
    const std::optional<files::LaunchRecord> launch = find(place, dir, outcome);
    if (!launch) return outcome;
    Result<GivenResources> given = given_of(launch->demands.resources, launch->offers, taken);
    if (!given) {
        outcome = failed(given.status().code, given.status().text, given.status().code == Code::limit);
        outcome.lacks_indices = outcome.again;
        return outcome;
    }
    if (const std::string wrong = wrong_with_cpus(given->indices); !wrong.empty()) return failed(Code::io_error, wrong);
    if (!held.slot.held()) {
        Result<locks::Slots> slot = locks::Slots::take(locks::this_world(), {{slots_file(place.slots), slot_limit}},
                                                       locks::Deadline::none(), "grain " + dir);
        if (!slot) return failed(slot.status().code, slot.status().text, slot.status().code == Code::limit);
        held = {std::move(*slot), ""};
    }
    DCS_REQUIRE(held.slot.lock_fds().size() == 1, "one limit has one lock");
    // Before there is a process: so no process is ever without a slot, whichever daemon is killed.
    failpoint("launcher.slot.before_hold");
    Leaf leaf = place.leaves->take(dir, launch->limits, place.leaves->denied_to(*launch, *given));
    const bool kept = held.kept_as.empty() ? place.keeper->hold(dir, leaf.name, held.slot.lock_fds()[0])
                                           : place.keeper->hand_on(held.kept_as, dir, leaf.name);
    if (!kept) {
        place.leaves->remove(leaf);
        return failed(Code::io_error, "the keeper of this host's slots is being replaced", true);
    }
    held.kept_as = dir;
    failpoint("launcher.slot.after_hold");
    StartOutcome started = run(place, dir, *launch, &held.slot, slot_limit, leaf.name, given->indices);
    if (started.kind != StartOutcome::Kind::started) {
        place.leaves->remove(leaf);
        return started;
    }
    started.indices = std::move(given->indices);
    started.leaf = std::move(leaf);
    return started;
}

}  // namespace dcs::launcher
