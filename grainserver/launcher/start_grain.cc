#include "grainserver/launcher/start_grain.h"

#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <optional>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/failpoint.h"
#include "base/planted.h"
#include "grainserver/files/grain_record.h"
#include "grainserver/files/launcher_calls.h"
#include "grainserver/files/owner_rules.h"
#include "grainserver/files/room.h"
#include "base/files.h"
#include "base/require.h"
#include "grainserver/launcher/become_grain.h"
#include "grainserver/launcher/container.h"
#include "process/cpus.h"

namespace dcs::launcher {
namespace {
std::vector<char *> pointers(const std::vector<std::string> &items) {
    std::vector<char *> list;
    for (const std::string &item : items) list.push_back(const_cast<char *>(item.c_str()));
    list.push_back(nullptr);
    return list;
}

// The command to execute: the program, or the host's runner followed by the program's path and arguments.
std::vector<std::string> command(const files::LaunchRecord &launch) {
    DCS_REQUIRE(!launch.argv.empty(), "a record without a program was refused before");
    if (launch.runner.empty()) return launch.argv;
    std::vector<std::string> words;
    for (const std::string &word : launch.runner) words.push_back(word == "{name}" ? launch.argv[0] : word);
    words.push_back(launch.program);
    words.insert(words.end(), launch.argv.begin() + 1, launch.argv.end());
    return words;
}

// Or a container that executes it.
Result<std::vector<std::string>> command(const Place &place, const std::string &dir, const files::LaunchRecord &launch,
                                         const GivenResources &given) {
    if (files::image_of(launch.files) == nullptr) return command(launch);
    const std::string directory = place.path.substr(0, place.path.rfind('/'));
    const Result<ImagePlace> image = place_image(place.base, directory, launch, dir);
    if (!image) return image.status();
    return container_command(launch, place.path, *image, gpus_of(given, place.gpus_by_file));
}

bool begins(const std::string &text, const char *start) { return text.rfind(start, 0) == 0; }

// DCS_UMASK of the grain's environment, in octal, by which `dcs run` and `dcs map` pass their caller's; without one
// only the grain's account may read what it makes.
mode_t umask_of(const std::vector<std::string> &env) {
    constexpr std::string_view name = "DCS_UMASK=";
    for (const std::string &item : env) {
        if (!begins(item, name.data())) continue;
        unsigned mask = 0;
        const char *end = item.data() + item.size();
        const auto [stop, error] = std::from_chars(item.data() + name.size(), end, mask, 8);
        if (error == std::errc() && stop == end && mask <= 0777) return mask;
    }
    return 077;
}

std::vector<std::string> environment(const files::LaunchRecord &launch, const std::string &directory,
                                     const GivenResources &given) {
    std::vector<std::string> env;
    for (const std::string &item : launch.env)
        if (!begins(item, "DCS_GRAIN_DIR=") && !begins(item, "DCS_GRAIN_SEQUENCE=") &&
            !is_resource_variable(item, given))
            env.push_back(item);
    for (std::string &item : resource_environment(given)) env.push_back(std::move(item));
    env.push_back("DCS_GRAIN_DIR=" + directory);
    env.push_back("DCS_GRAIN_SEQUENCE=" + std::to_string(launch.next_seq));
    return env;
}

// Waits for the exec (end of file) or for the failure before it.
bool read_failure(int pipe, Failure &failure) {
    ssize_t n;
    do n = ::read(pipe, &failure, sizeof failure);
    while (n < 0 && errno == EINTR);
    return n == static_cast<ssize_t>(sizeof failure);
}

void wait_for_end(pid_t pid) {
    int status = 0;
    for (;;) {
        const pid_t ended = ::waitpid(pid, &status, 0);  // also reports the stop at the exec
        if (ended < 0 ? errno != EINTR : WIFEXITED(status) || WIFSIGNALED(status)) return;
    }
}

// Owns the data that the plan points to; lives until after the fork.
struct StartMaterial {
    files::Room room;
    std::string out, err, directory;
    std::vector<std::string> words, env;
    std::vector<char *> argv_list, env_list;
    Leaf leaf;
    const files::Confinement *confinement = nullptr;
    std::vector<int> joins;
    std::optional<cpu_set_t> cpus;
    Plan plan;
};

void fill_plan(StartMaterial &p, const Place &place, const Fd &grain, const files::LaunchRecord &launch,
               int slot_limit) {
    DCS_REQUIRE(grain && p.room.fd, "the directory of the grain and its room are open");
    DCS_REQUIRE(!p.argv_list.empty() && p.argv_list.back() == nullptr && p.env_list.back() == nullptr,
                "both lists for execve are terminated");
    Plan &plan = p.plan;
    plan.grain = grain.get();
    plan.room = p.room.fd.get();
    plan.used_again = file_exists(grain.get(), files::pid_name);
    plan.out = p.out.c_str();
    plan.err = p.err.c_str();
    plan.directory = launch.directory.empty() ? nullptr : launch.directory.c_str();
    plan.program = launch.program.c_str();
    plan.contained = files::image_of(launch.files) != nullptr;
    if (plan.contained || !launch.runner.empty()) plan.runner = p.words[0].c_str();
    plan.boot_id = place.boot_id.c_str();
    plan.argv = p.argv_list.data();
    plan.env = p.env_list.data();
    plan.umask = umask_of(launch.env);
    plan.launcher = ::getpid();
    plan.joins = p.joins.data();
    plan.join_count = static_cast<int>(p.joins.size());
    plan.change_user = launch.account.change;
    plan.uid = launch.account.uid;
    plan.gid = launch.account.gid;
    plan.groups = launch.account.groups.data();
    plan.group_count = static_cast<unsigned>(launch.account.groups.size());
    plan.confinement = p.confinement;
    if (p.cpus) plan.cpus = &*p.cpus;
    plan.file_bytes = static_cast<std::uint64_t>(launch.limits.file_mb) << 20;
    // The sum over all grains of the user on this host, as a first barrier; the limit itself is checked separately.
    if (launch.account.made_up && launch.limits.processes > 0 && !p.leaf.processes)
        plan.user_processes = static_cast<std::uint64_t>(launch.limits.processes * slot_limit);
}

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

std::optional<cpu_set_t> cpus_of(const Indices &indices) {
    const auto its = indices.find(cpu_resource);
    if (its == indices.end() || its->second.empty()) return std::nullopt;
    cpu_set_t set;
    CPU_ZERO(&set);
    for (const std::int32_t cpu : its->second)
        if (cpu < CPU_SETSIZE) CPU_SET(static_cast<std::size_t>(cpu), &set);
    return set;
}

// A server refuses to offer such ones; the host table is written elsewhere.
std::string wrong_with_cpus(const Indices &indices) {
    const auto its = indices.find(cpu_resource);
    const std::string lacks = its == indices.end() ? "" : lacks_cpus(its->second);
    return lacks.empty() ? "" : lacks + ": correct `" + cpu_resource + "` in the host table's `resources=`";
}

// The devices that it must not open, as far as its control group can do that.
Devices devices_denied(const Place &place, const files::LaunchRecord &launch, const GivenResources &given) {
    const bool can = place.gpus_by_file && place.leaves->denies_devices();
    return can ? others_devices(launch.offers, given) : Devices();
}

// Without a slot: only proves that it could run.
StartOutcome run(const Place &place, const std::string &dir, const Fd &grain, const files::LaunchRecord &launch,
                 locks::Slots *slot, int slot_limit, Leaf &leaf, GivenResources given) {
    StartMaterial p;
    Result<files::Room> room = files::open_room(grain.get());
    if (!room) return failed(Code::io_error, room.status().text);
    p.room = std::move(*room);
    const auto confinement = place.prepared->confinement({launch.rungs, p.room.fd.get(), launch.writable});
    if (!confinement) return failed(Code::io_error, "confinement of the grain: " + confinement.status().text);
    p.confinement = *confinement;
    p.out = files::out_name(launch.next_seq);
    p.err = files::err_name(launch.next_seq);
    p.env = environment(launch, place.path + "/" + dir + "/" + files::room_name, given);
    if (place.gpus_by_file) number_for_cuda(p.env, given, leaf.denied, files::image_of(launch.files) != nullptr);
    Result<std::vector<std::string>> words = command(place, dir, launch, given);
    if (!words) return failed(words.status().code, words.status().text);
    p.words = std::move(*words);
    p.argv_list = pointers(p.words);
    p.env_list = pointers(p.env);
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0)
        return failed(Code::io_error, std::string("descriptors for the grain: ") + std::strerror(errno));
    const Fd report_in(ends[0]);
    Fd report_out(ends[1]);
    p.cpus = cpus_of(given.indices);
    p.leaf = std::move(leaf);
    for (const Fd &join : p.leaf.joins) p.joins.push_back(join.get());
    fill_plan(p, place, grain, launch, slot_limit);
    p.plan.report = report_out.get();
    p.plan.only_prove = slot == nullptr;
    failpoint("launcher.start.before_fork");
    const pid_t pid = fork_grain(p.plan);
    failpoint("launcher.start.after_fork");
    if (pid < 0) {
        const int error = errno;
        leaf = std::move(p.leaf);
        return failed(Code::io_error, std::string("cannot create a process for the grain: ") + std::strerror(error));
    }
    DCS_REQUIRE(pid > 1, "only the parent returns from fork_grain");
    report_out = Fd();
    Failure failure{};
    if (read_failure(report_in.get(), failure)) {
        wait_for_end(pid);
        if (slot != nullptr) remove_file(grain.get(), files::pid_name);
        leaf = std::move(p.leaf);
        return told(failure, launch);
    }
    StartOutcome outcome;
    outcome.kind = StartOutcome::Kind::started;
    if (slot == nullptr) {
        failpoint("launcher.prove.before_kill");
        ::kill(pid, SIGKILL);
        wait_for_end(pid);
        return outcome;
    }
    failpoint("launcher.start.after_exec");
    outcome.pid = pid;
    name_owner(*slot, pid, dir, launch.program);
    outcome.limits = launch.limits;
    outcome.account = launch.account;
    outcome.indices = std::move(given.indices);
    outcome.leaf = std::move(p.leaf);
    return outcome;
}

// Checks the owner's present rules: the server may have been restarted with other options.
Status allowed(const Place &place, const files::LaunchRecord &launch) {
    const Result<const files::OwnerRules *> rules = place.prepared->rules(place.base);
    if (!rules)
        return fail(Code::io_error, "the rules of this host's owner cannot be read (" + rules.status().text +
                                        "): dcs_grainserver writes them when it starts");
    return files::permits(**rules, launch, files::logins_of_this_host());
}

bool has_run(int grain) {
    if (planted("launcher.starts_again")) return false;
    return files::has_record(grain, files::pid_name) || files::has_record(grain, files::exit_name);
}

struct Ready {
    Fd grain;
    files::LaunchRecord launch;
};
// Finds the grain to run. Otherwise `outcome` gives the reason, or states that it is running or has ended.
std::optional<Ready> find(const Place &place, const std::string &dir, StartOutcome &outcome) {
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
    if (!launch) outcome = failed(Code::io_error, launch.status().text);
    else if (launch->argv.empty() || launch->program.empty() ||
             (launch->program[0] != '/' && files::image_of(launch->files) == nullptr))
        outcome = failed(Code::invalid, "the launch record names no program");
    else if (const Status s = allowed(place, *launch); !s) outcome = failed(Code::io_error, s.text);
    else return Ready{std::move(*grain), std::move(*launch)};
    return {};
}
}  // namespace

StartOutcome prove_grain(const Place &place, const std::string &dir) {
    StartOutcome outcome;
    const std::optional<Ready> ready = find(place, dir, outcome);
    Leaf none;
    return ready ? run(place, dir, ready->grain, ready->launch, nullptr, 1, none, {}) : std::move(outcome);
}

bool was_started(const Place &place, const std::string &dir) {
    const Result<Fd> grain = open_directory(place.grains, dir);
    return grain && has_run(grain->get());
}

namespace {
Result<locks::Slots> take_slot(const Place &place, const std::string &dir, int slot_limit) {
    const auto take = [&] {
        return locks::Slots::take(locks::this_world(), {{slots_file(place.slots), slot_limit}}, locks::Deadline::none(),
                                  "grain " + dir);
    };
    Result<locks::Slots> slot = take();
    if (slot || slot.status().code == Code::limit) return slot;
    if (::mkdir(place.slots.c_str(), 0700) == 0) return take();
    if (errno == EEXIST) return slot;
    return fail(Code::io_error, "directory of slots " + place.slots + ": " + std::strerror(errno));
}
}  // namespace

StartOutcome start_grain(const Place &place, const std::string &dir, int slot_limit, HeldSlot &held,
                         const std::vector<const Indices *> &taken) {
    StartOutcome outcome;
    const std::optional<Ready> ready = find(place, dir, outcome);
    if (!ready) return outcome;
    Result<GivenResources> given = given_of(ready->launch.demands.resources, ready->launch.offers, taken);
    if (!given) {
        outcome = failed(given.status().code, given.status().text, given.status().code == Code::limit);
        outcome.lacks_indices = outcome.again;
        return outcome;
    }
    if (!held.slot.held()) {
        Result<locks::Slots> slot = take_slot(place, dir, slot_limit);
        if (!slot) return failed(slot.status().code, slot.status().text, slot.status().code == Code::limit);
        held = {std::move(*slot), ""};
    }
    DCS_REQUIRE(held.slot.lock_fds().size() == 1, "one limit has one lock");
    // Before there is a process: so no process is ever without a slot, whichever daemon is killed.
    failpoint("launcher.slot.before_hold");
    if (const std::string wrong = wrong_with_cpus(given->indices); !wrong.empty()) return failed(Code::io_error, wrong);
    const Devices denied = devices_denied(place, ready->launch, *given);
    Leaf leaf = place.leaves->take(dir, ready->launch.limits, denied);
    if (!denied.empty() && leaf.denied != denied) {
        place.leaves->remove(leaf);
        return failed(Code::io_error, "its control group does not keep the GPUs of other grains from it");
    }
    const bool kept = held.kept_as.empty() ? place.keeper->hold(dir, leaf.name, held.slot.lock_fds()[0])
                                           : place.keeper->hand_on(held.kept_as, dir, leaf.name);
    if (!kept) {
        place.leaves->remove(leaf);
        return failed(Code::io_error, "the keeper of this host's slots is being replaced", true);
    }
    held.kept_as = dir;
    failpoint("launcher.slot.after_hold");
    StartOutcome started =
        run(place, dir, ready->grain, ready->launch, &held.slot, slot_limit, leaf, std::move(*given));
    if (started.kind != StartOutcome::Kind::started) place.leaves->remove(leaf);
    return started;
}

bool lower_session_priority(pid_t pid) {
    char path[64];
    std::snprintf(path, sizeof path, "/proc/%d/autogroup", static_cast<int>(pid));
    const Fd fd(::open(path, O_WRONLY | O_CLOEXEC));
    if (!fd) return true;  // the kernel lacks it, or the process has ended
    return ::write(fd.get(), "19", 2) == 2 || errno != EAGAIN;
}

}  // namespace dcs::launcher
