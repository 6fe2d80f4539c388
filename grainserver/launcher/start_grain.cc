#include "grainserver/launcher/start_grain.h"

#include <cerrno>
#include <cstring>
#include <optional>

#include <sys/wait.h>
#include <unistd.h>

#include "base/failpoint.h"
#include "base/files.h"
#include "base/planted.h"
#include "base/require.h"
#include "grainserver/files/launcher_calls.h"
#include "grainserver/starter/container.h"

namespace dcs::launcher {

using starter::Failure, starter::Step, starter::There;
namespace {

constexpr std::size_t spares_max = 256;

std::string exec_words(const std::string &program, const Failure &failure) {
    DCS_REQUIRE(failure.step == Step::exec || failure.step == Step::runner, "only these two steps execute anything");
    const int error = failure.error;
    const bool there = failure.program != There::nothing;
    if (failure.program == There::directory) return program + " is a directory, not a program";
    if (failure.program == There::script_with_cr)
        return program +
               " has lines that end in CR LF: the CR counts as part of its interpreter's name; "
               "`sed -i 's/\\r$//' FILE` removes it";
    if (error == ENOENT && there) return program + " exists, but its interpreter or loader does not";
    if (error == EACCES && there) return program + " is not executable for this user";
    if (error == ENOEXEC) return program + " is neither a program of this kind of machine nor a script with a #! line";
    if (error == E2BIG)
        return "an argument or the environment is longer than this host's system accepts: " +
               std::string(std::strerror(error));
    return "cannot start " + program + ": " + std::strerror(error);
}

// A temporary error of the host, as opposed to a request that this host cannot fulfil.
bool host_trouble(int error) {
    for (const int passing :
         {ENOMEM, EAGAIN, EMFILE, ENFILE, EIO, ENOSPC, EDQUOT, ETXTBSY, ESTALE, ENOTCONN, ETIMEDOUT})
        if (error == passing) return true;
    return false;
}

// The cause of a failed step (wire::LaunchResult). not_found marks the program on this host for all of its user's
// grains; invalid concerns this grain alone: its arguments and environment, its working directory.
Code fault_of(const Failure &failure) {
    if (failure.error == ENOSPC || failure.error == EDQUOT) return Code::no_space;
    if (host_trouble(failure.error)) return Code::io_error;
    return failure.step == Step::exec && failure.error != E2BIG ? Code::not_found : Code::invalid;
}

// A grain runs seldom as the user who submits it.
std::string for_account(const Failure &failure, const files::Account &account) {
    if (failure.error != EACCES || !account.change) return "";
    return " for uid " + std::to_string(account.uid) +
           ", under which the grain runs; --cwd DIR names another directory";
}

locks::Place slots_file(const std::string &directory) {
    locks::Place place{.path = directory + "/" + files::slots_file};
    place.atom = locks::Atom{"grains", "", "any"};  // a host may be renamed while they run
    return place;
}

// For listings of the slots: the grain works in it, and the launcher supervises.
void name_owner(locks::Slots &slot, const ProcessIdentity &grain, const std::string &dir, const std::string &program) {
    DCS_REQUIRE(grain.pid > 1 && slot.held(), "a slot is held by a running grain");
    const locks::World &world = locks::this_world();
    locks::Owner owner;
    owner.process = grain;
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
    StartOutcome outcome{.kind = StartOutcome::Kind::started};
    if (slot == nullptr) return outcome;
    failpoint("launcher.start.after_exec");
    outcome.pid = static_cast<pid_t>(answer.value);
    outcome.low_priority = (answer.bits & starter::is_lowered) != 0;
    name_owner(*slot, identify_child(outcome.pid, answer.start_ticks), dir, launch.program);
    outcome.limits = launch.limits;
    outcome.account = launch.account;
    return outcome;
}

std::string in(const std::string &dir, const char *name) { return dir + "/" + name; }

// Finds the grain to run. Otherwise `outcome` gives the reason, or states that it is running or has ended.
std::optional<files::LaunchRecord> find(const Place &place, const std::string &dir, StartOutcome &outcome) {
    if (was_started(place, dir)) {
        outcome.kind = StartOutcome::Kind::have_it;
        return {};
    }
    const Result<std::string> bytes = files::read_record(place.grains, in(dir, files::launch_name));
    Result<files::LaunchRecord> launch =
        bytes ? files::unpack_launch(*bytes) : Result<files::LaunchRecord>(bytes.status());
    if (launch) return std::move(*launch);
    outcome = failed(Code::io_error, "directory of the grain: " + launch.status().text);
    return {};
}

}  // namespace

Leaf Leaves::take(const std::string &dir, const files::Limits &limits, const starter::Devices &denied) {
    for (std::size_t i = spares_.size(); i-- > 0 && limits.memory_mb == 0;) {
        if (spares_[i].processes_max != limits.processes) continue;
        if (spares_[i].denied != denied && !planted("launcher.leaf_of_other_devices")) continue;
        Leaf leaf = std::move(spares_[i]);
        spares_.erase(spares_.begin() + static_cast<std::ptrdiff_t>(i));
        leaf.refused = planted("launcher.old_refusals") ? 0 : Cgroups::refused_in(leaf);
        if (Cgroups::is_empty(leaf)) return leaf;
        remove(leaf);  // the host's administrator has put a process into it
    }
    std::string name = dir;
    while (names_.count(name) != 0) name = dir + "+" + std::to_string(next_++);
    Leaf leaf = starter_.make_leaf(cgroups_, name, limits, denied);
    if (leaf.there) names_.insert(name);
    return leaf;
}

bool Leaves::give_back(Leaf &leaf) {
    DCS_REQUIRE(leaf.there, "the grain has a leaf");
    const bool again = leaf.memory_max_mb == 0 && !leaf.sealed && spares_.size() < spares_max;
    if (!again) return remove(leaf);
    if (!Cgroups::is_empty(leaf) && !planted("launcher.leaf_with_processes")) return false;
    spares_.push_back(std::move(leaf));
    leaf = Leaf();
    return true;
}

bool Leaves::remove(Leaf &leaf) {
    if (!leaf.there) return true;
    leaf.joins.clear();
    if (!starter_.remove_leaf(leaf.name)) return false;
    names_.erase(leaf.name);
    leaf = Leaf();
    return true;
}

void Leaves::remove_spares() {
    for (Leaf &leaf : spares_) remove(leaf);
    spares_.clear();
}

StartOutcome failed(Code code, std::string text, bool again) {
    return {.code = code, .again = again, .text = std::move(text)};
}

std::string where_looked(const files::LaunchRecord &launch, const Failure &failure) {
    if (failure.error != ENOENT || failure.program != There::nothing || launch.writable.empty()) return "";
    const std::string &home = launch.writable.back();
    if (launch.program != home + "/" + launch.argv[0]) return "";
    return ": a program without a path is looked for in the DCS home, not in PATH; `command -v " + launch.argv[0] +
           "` shows its path";
}

StartOutcome told(const Failure &failure, const files::LaunchRecord &launch) {
    const std::string why = std::strerror(failure.error);
    const Code trouble = failure.error == ENOSPC || failure.error == EDQUOT ? Code::no_space : Code::io_error;
    const Code code = fault_of(failure);
    switch (failure.step) {
    case Step::exec: return failed(code, exec_words(launch.program, failure) + where_looked(launch, failure));
    case Step::runner:
        return failed(Code::io_error,
                      "the runner of this host: " +
                          exec_words(launch.runner.empty() ? starter::container_runner() : launch.runner[0], failure));
    case Step::directory:
        if (launch.directory.empty()) return failed(trouble, "working directory of the grain: " + why);
        return failed(code,
                      "working directory " + launch.directory + ": " + why + for_account(failure, launch.account));
    case Step::streams: return failed(trouble, "standard streams of the grain: " + why);
    case Step::group: return failed(trouble, "control group of the grain: " + why);
    case Step::cpus:
        return failed(Code::io_error, "the grain's CPUs, which this host offers as its resource " +
                                          std::string(cpu_resource) + ": " + why);
    case Step::confinement: return failed(trouble, "confinement of the grain: " + why);
    case Step::identity: return failed(trouble, "account of the grain: " + why);
    case Step::pid_file: return failed(trouble, "file pid of the grain: " + why);
    case Step::orphaned: break;
    }
    return failed(Code::io_error, "the launcher ended during the start");
}

StartOutcome prove_grain(const Place &place, const std::string &dir) {
    StartOutcome outcome;
    const std::optional<files::LaunchRecord> launch = find(place, dir, outcome);
    return launch ? run(place, dir, *launch, nullptr, 1, "", {}) : std::move(outcome);
}

bool was_started(const Place &place, const std::string &dir) {
    if (planted("launcher.starts_again")) return false;
    return files::has_record(place.grains, in(dir, files::pid_name)) ||
           files::has_record(place.grains, in(dir, files::exit_name));
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
